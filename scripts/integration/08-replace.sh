#!/usr/bin/env bash
# The broker's container is replaced by a new one on the same volume while clients work, as for a new version: they reconnect, and nothing
# is lost or duplicated.
. "$(dirname "$0")/common.sh"

start_broker
create orders --storage durable --sync 50ms
background reader sub orders --reconnect
eventually "a subscriber is there" subscribed orders 1
seq 15000 | client writer pub orders --ack durable --reconnect --rate 1000 --complete --quiet >"$WORK/writer" 2>"$WORK/writer.err" &
writer=$!
for lines in 2000 7000; do
  eventually "records have come" has_lines "$WORK/reader" "$lines"
  old=$(broker)
  compose up -d --force-recreate broker
  eventually "the new broker is healthy" is_healthy
  check "the broker is another one" [ "$(broker)" != "$old" ]
done
check "the publisher has had everything acknowledged" wait "$writer"
check "the subscriber ends with the topic" ended reader
check "it has every line, in order and once" is_sequence "$WORK/reader" 1 15000
client late sub orders </dev/null >"$WORK/late"
check "so has a late subscriber" is_sequence "$WORK/late" 1 15000
