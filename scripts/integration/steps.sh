# shellcheck shell=bash
# Steps of scenarios, for a broker in a container or as a process. `client` defines how they run sluice; $WORK is the scenario's own folder.

say() { echo "$SCENARIO: $*"; }
fail() { say "FAILED: $*"; exit 1; }
# Ends the scenario, which can't run on this machine.
skip() { say "SKIPPED: $*"; exit 0; }

# `WHAT COMMAND...`: retries the command until it succeeds. Containers may start slowly on a busy machine.
eventually() {
  local end=$((SECONDS + 180)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then
      say "FAILED, not in time: $what"
      exit 1
    fi
    sleep 0.2
  done
}

# `WHAT COMMAND...`
check() {
  local what=$1
  shift
  if "$@"; then
    say "ok: $what"
  else
    say "FAILED: $what ($*)"
    exit 1
  fi
}

# TOPIC SETTING...
create() { client create topic create "$@" </dev/null >/dev/null; }

# Runs a client in the background. Its output goes to the file $WORK/NAME, and its messages to $WORK/NAME.err.
background() {
  client "$@" >"$WORK/$1" 2>"$WORK/$1.err" </dev/null &
  eval "PID_${1//-/_}=$!"
}

# NAME: waits until a client in the background has ended, and returns its exit code.
ended() {
  local pid=PID_${1//-/_}
  wait "${!pid}"
}

# TOPIC COUNT: whether the topic has this number of subscribers.
subscribed() { [ "$(client observer topic show "$1" --json </dev/null | sed -n 's/.*"subscribers":\([0-9]*\).*/\1/p')" = "$2" ]; }

# FILE COUNT: whether the file has at least this number of lines.
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# FILE FIRST LAST: whether the file consists of these numbers, a line each, in order and without duplicates.
is_sequence() { seq "$2" "$3" | cmp -s - "$1"; }
# FILE FIRST LAST: whether the file contains each of these numbers, in any order, with or without duplicates.
has_all() { seq "$2" "$3" | cmp -s - <(sort -nu "$1"); }
