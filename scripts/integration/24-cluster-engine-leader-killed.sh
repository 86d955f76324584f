#!/usr/bin/env bash
# The leader of the engine is killed: the others elect another one, and clients keep working.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 10000
leader=$(engine_leader)
say "the server $leader leads the engine, and is killed"
kill_members "$leader"
goes_on
start_members
await_copies
check "another server leads" [ "$(engine_leader)" != "$leader" ]
goes_on
finish_load
