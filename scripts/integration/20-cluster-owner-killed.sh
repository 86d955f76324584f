#!/usr/bin/env bash
# The node that owns a topic is killed: another node becomes the owner, and clients resume there.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 6000
former=$(owner)
say "$former owns the topic, and is killed"
kill_members "$former"
eventually "another node owns the topic" has_moved_from "$former"
goes_on
start_members
finish_load
