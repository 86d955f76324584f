# shellcheck shell=bash
# Steps of scenarios, whether the broker runs in a container or as a process. `client` is how they run sluice; $WORK is a folder of their own.

say() { echo "$SCENARIO: $*"; }
fail() { say "FAILED: $*"; exit 1; }
# Ends the scenario, which this machine can't play.
skip() { say "SKIPPED: $*"; exit 0; }

# WHAT COMMAND...: tries again until it succeeds. Containers may be slow to start on a machine that is busy.
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

# WHAT COMMAND...
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

# A client in the background. What it prints is in the file $WORK/NAME, what it says in $WORK/NAME.err.
background() {
  client "$@" >"$WORK/$1" 2>"$WORK/$1.err" </dev/null &
  eval "PID_${1//-/_}=$!"
}

# NAME: waits until a client in the background has ended, and fails as it did.
ended() {
  local pid=PID_${1//-/_}
  wait "${!pid}"
}

# TOPIC COUNT: whether it has so many subscribers.
subscribed() { [ "$(client observer topic show "$1" --json </dev/null | sed -n 's/.*"subscribers":\([0-9]*\).*/\1/p')" = "$2" ]; }

# FILE COUNT: whether it has so many lines at least.
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# FILE FIRST LAST: whether it is these numbers, a line each, all of them, in order and once.
is_sequence() { seq "$2" "$3" | cmp -s - "$1"; }
# FILE FIRST LAST: whether it has each of these numbers, in any order and however often.
has_all() { seq "$2" "$3" | cmp -s - <(sort -nu "$1"); }
