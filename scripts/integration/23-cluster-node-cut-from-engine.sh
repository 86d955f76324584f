#!/usr/bin/env bash
# A node can't reach the engine, but can reach its clients: its topics move to other nodes.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 8000
former=$(owner)
say "$former owns the topic, and can't reach the engine"
cut_from_engine "$former"
eventually "another node owns the topic" has_moved_from "$former"
sleep "$BEYOND_LEASE"
heal "$former"
goes_on
start_members
finish_load
