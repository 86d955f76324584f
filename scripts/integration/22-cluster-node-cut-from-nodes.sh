#!/usr/bin/env bash
# A node and the other nodes can't reach each other, but can reach the engine: none of them takes a topic of another
# node, and clients keep working.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 8000
node=$(owner)
say "$node and the other nodes can't reach each other"
cut_from_nodes "$node"
sleep "$BEYOND_LEASE"
goes_on
heal "$node"
goes_on
start_members
finish_load
