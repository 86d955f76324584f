#!/usr/bin/env bash
# A subscriber whose container is paused doesn't block the others. After the pause, all records arrive there.
. "$(dirname "$0")/common.sh"

start_broker
create numbers
background frozen sub numbers
background lively sub numbers
eventually "both have subscribed" subscribed numbers 2
seq 1000 | client first pub numbers --quiet
eventually "both have received something" has_lines "$WORK/frozen" 1000

docker pause "$PROJECT-frozen" >/dev/null
say "one of two subscribers is paused, and 300,000 lines are published"
seq 1001 300000 | client second pub numbers --complete --quiet
check "the other ends with the topic" ended lively
check "it has every line, in order and once" is_sequence "$WORK/lively" 1 300000
check "while the paused one has had no more" [ "$(docker inspect -f '{{.State.Paused}}' "$PROJECT-frozen")" = true ]

docker unpause "$PROJECT-frozen" >/dev/null
check "it ends with the topic when it goes on" ended frozen
check "and has every line, in order and once" is_sequence "$WORK/frozen" 1 300000
