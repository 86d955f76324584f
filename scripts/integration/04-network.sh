#!/usr/bin/env bash
# A client that loses its network and gets it back resumes after its last record: nothing is lost or duplicated.
. "$(dirname "$0")/common.sh"

network=${PROJECT}_default
start_broker
create numbers
# A connection that is silent for this long is closed.
OPTIONS=(--env SLUICE_KEEPALIVE=2s)
background reader sub numbers --reconnect
background other sub numbers --reconnect
eventually "both have subscribed" subscribed numbers 2
seq 20000 | client writer pub numbers --reconnect --rate 1000 --complete --quiet >"$WORK/writer" 2>"$WORK/writer.err" &
writer=$!

eventually "records have come" has_lines "$WORK/reader" 1000
say "a subscriber has no network for six seconds, of twenty in which 20,000 lines are published"
docker network disconnect "$network" "$PROJECT-reader"
before=$(wc -l <"$WORK/reader")
sleep 6
check "it has received nothing meanwhile" [ "$(wc -l <"$WORK/reader")" -le $((before + 1000)) ]
check "the other has" has_lines "$WORK/other" $((before + 2000))
docker network connect "$network" "$PROJECT-reader"

say "then the publisher has none for four"
docker network disconnect "$network" "$PROJECT-writer"
sleep 4
docker network connect "$network" "$PROJECT-writer"

check "the publisher has had everything acknowledged" wait "$writer"
check "the subscriber ends with the topic" ended reader
check "it has every line, in order and once" is_sequence "$WORK/reader" 1 20000
check "so does the other" ended other
check "with every line, too" is_sequence "$WORK/other" 1 20000
