#!/usr/bin/env bash
# A broker that is killed and restarted on the same volume still has all acknowledged records, and clients resume.
. "$(dirname "$0")/common.sh"

start_broker
create orders --storage durable --sync always
say "50,000 lines are published and acknowledged as durable, and the broker is killed"
seq 50000 | client first pub orders --ack durable --quiet
docker kill --signal KILL "$(broker)" >/dev/null
start_broker
client all sub orders --until-live </dev/null >"$WORK/all"
check "all of them are there" is_sequence "$WORK/all" 1 50000

say "it is killed twice more while a client publishes and one subscribes"
background reader sub orders --reconnect
seq 50001 62000 | client writer pub orders --ack durable --reconnect --rate 1000 --complete --quiet >"$WORK/writer" 2>"$WORK/writer.err" &
writer=$!
for lines in 52000 55000; do
  eventually "records have come" has_lines "$WORK/reader" "$lines"
  docker kill --signal KILL "$(broker)" >/dev/null
  sleep 1
  start_broker
done
check "the publisher has had everything acknowledged" wait "$writer"
check "the subscriber ends with the topic" ended reader
check "it has every line, in order and once" is_sequence "$WORK/reader" 1 62000
client again sub orders </dev/null >"$WORK/again"
check "so has a late subscriber" is_sequence "$WORK/again" 1 62000
