#!/usr/bin/env bash
# All nodes and all servers of the engine are killed at once, twice: no acknowledged record is lost.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 6000
for time in 1 2; do
  say "everything is killed, time $time"
  kill_members "${NODES[@]}" "${ENGINES[@]}"
  start_members
  goes_on
done
finish_load
