#!/usr/bin/env bash
# Every node and then every server of the engine is replaced, one after the other, as for a new version: clients notice only the pause.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 30000
for node in "${NODES[@]}"; do
  say "$node is replaced"
  replace_member "$node"
  start_members
  goes_on
done
for server in "${ENGINES[@]}"; do
  await_copies
  say "$server is replaced"
  replace_member "$server"
  start_members
  goes_on
done
await_copies
finish_load
