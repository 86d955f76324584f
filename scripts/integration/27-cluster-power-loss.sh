#!/usr/bin/env bash
# The disks of all servers of the engine lose power at once, and all processes are killed, twice: no acknowledged record is lost.
. "$(dirname "$0")/cluster.sh"

take_disks
start_members
start_load 20000
for time in 1 2; do
  say "the power is gone, time $time"
  lose_power_of_members
  start_members
  goes_on
done
finish_load
