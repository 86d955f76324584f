#!/usr/bin/env bash
# A broker in 160 MiB of memory, with a subscriber that doesn't read, receives half a gigabyte: the broker keeps running, and other
# subscribers get all records.
. "$(dirname "$0")/common.sh"

settings <<'END'
services:
  broker:
    mem_limit: 160m
    memswap_limit: 160m
    environment:
      SLUICED_STORAGE: memory
END
# 2,048 lines of 16 KiB, 32 MiB.
line=$(head -c 16383 /dev/zero | tr '\0' x)
for _ in $(seq 2048); do echo "$line"; done >"$WORK/lines"
chmod 755 "$WORK"
chmod 644 "$WORK/lines"

start_broker
create load --replay-bytes 64MiB
background stuck sub load --format '{offset}' --demand unlimited
background lively sub load --format '{offset}'
eventually "both have subscribed" subscribed load 2
docker pause "$PROJECT-stuck" >/dev/null
OPTIONS=(--volume "$WORK/lines:/lines:ro")
say "one of two subscribers is paused, and 16 times 32 MiB are published"
for round in $(seq 16); do
  client "producer-$round" pub load --file /lines --quiet </dev/null
  # Waits in each round, so that this subscriber misses no record, though the broker only keeps the newest 64 MiB.
  eventually "the other has all of round $round" has_lines "$WORK/lively" $((round * 2048))
done
check "the other has every record, in order and once" is_sequence "$WORK/lively" 0 32767
check "the broker lives" is_healthy
check "and always has" [ "$(docker inspect -f '{{.State.OOMKilled}} {{.RestartCount}}' "$(broker)")" = "false 0" ]

docker unpause "$PROJECT-stuck" >/dev/null
client last topic complete load </dev/null
check "the other ends with the topic" ended lively
check "so does the paused one, when it goes on" ended stuck
check "it has the last record" [ "$(tail -n 1 "$WORK/stuck")" = 32767 ]
check "and was told what it has missed" grep -q 'were dropped' "$WORK/stuck.err"
