#!/usr/bin/env bash
# Records arrive from one container at several others, including late subscribers.
. "$(dirname "$0")/common.sh"

start_broker
say "three subscribers wait, and 100,000 lines are published"
create numbers
for name in one two three; do background "$name" sub numbers; done
eventually "three have subscribed" subscribed numbers 3
seq 100000 | client producer pub numbers --complete --quiet
for name in one two three; do
  check "subscriber $name ends with the topic" ended "$name"
  check "it has every line, in order and once" is_sequence "$WORK/$name" 1 100000
done

say "a late subscriber"
client late sub numbers </dev/null >"$WORK/late"
check "has every line too" is_sequence "$WORK/late" 1 100000
client last sub numbers --from last:100 </dev/null >"$WORK/last"
check "or the last 100" is_sequence "$WORK/last" 99901 100000
client some sub numbers --from offset:500 --count 10 </dev/null >"$WORK/some"
check "or ten from offset 500" is_sequence "$WORK/some" 501 510
