#!/usr/bin/env bash
# The node that owns a topic is paused for longer than its lease, and resumes after another node has become the owner:
# it changes nothing.
. "$(dirname "$0")/cluster.sh"

start_members
start_load 8000
former=$(owner)
say "$former owns the topic, and is paused for longer than its lease"
pause_member "$former"
eventually "another node owns the topic" has_moved_from "$former"
goes_on
wake_member "$former"
goes_on
start_members
finish_load
