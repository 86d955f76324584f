# shellcheck shell=bash
# What scenarios share. Each is a program of its own that begins with this file, and needs the image in SLUICE_IMAGE; scripts/integration.sh
# sees to that. Whatever it starts belongs to a project of docker-compose's with a name of its own, and goes when it ends.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SCENARIO=$(basename "$0" .sh)
: "${SLUICE_IMAGE:?name the image to try; scripts/integration.sh does}"
PROJECT=sluice-$SCENARIO-$$
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sluice-integration.XXXXXX")
# The broker's port on this machine is any that is free, on loopback.
export SLUICE_IMAGE SLUICE_PORT='' SLUICE_ADMIN_PORT=''
if command -v docker-compose >/dev/null; then COMPOSE=(docker-compose); else COMPOSE=(docker compose); fi

say() { echo "$SCENARIO: $*"; }

# Docker/compose.yaml as a scenario has it: with compose.yaml here, and what it passed to `settings`.
compose() {
  local files=(-f "$TOP/Docker/compose.yaml" -f "$TOP/scripts/integration/compose.yaml")
  if [ -e "$WORK/settings.yaml" ]; then files+=(-f "$WORK/settings.yaml"); fi
  "${COMPOSE[@]}" --project-name "$PROJECT" "${files[@]}" "$@" 2>>"$WORK/compose.log"
}

# More of a compose file, from standard input.
settings() { cat >"$WORK/settings.yaml"; }

# SERVICE: its container, running or not.
container() {
  docker ps --all --quiet --filter "label=com.docker.compose.project=$PROJECT" --filter "label=com.docker.compose.service=$1"
}
broker() { container broker; }

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

is_healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(broker)")" = healthy ]; }

# Starts the broker alone, and waits until it answers.
start_broker() {
  compose up -d broker
  eventually "the broker is healthy" is_healthy
}

# NAME ARGUMENT...: sluice in a container of its own on the broker's network, with this standard input and output. OPTIONS is for docker run.
OPTIONS=()
client() {
  local name=$1
  shift
  docker run --interactive --rm --name "$PROJECT-$name" --label "sluice=$PROJECT" --network "${PROJECT}_default" \
    --read-only --cap-drop ALL --env SLUICE_SERVER="${SERVER:-broker:7420}" "${OPTIONS[@]}" --entrypoint sluice "$SLUICE_IMAGE" "$@"
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

finish() {
  local code=$? file container containers
  trap - EXIT INT TERM
  if [ "$code" -ne 0 ]; then
    for file in "$WORK"/*.err "$WORK/compose.log"; do
      if [ -s "$file" ]; then
        echo "--- ${file##*/}"
        tail -n 20 "$file"
      fi
    done
    for container in $(broker); do
      echo "--- the broker"
      docker logs --tail 30 "$container" 2>&1 || true
    done
  fi
  containers=$(docker ps --all --quiet --filter "label=sluice=$PROJECT")
  # shellcheck disable=SC2086 # a word each
  if [ -n "$containers" ]; then docker rm --force $containers >/dev/null 2>&1 || true; fi
  compose down --volumes --timeout 5 || true
  wait
  rm -rf "$WORK"
  exit "$code"
}
trap finish EXIT
trap 'say "FAILED: $BASH_COMMAND"' ERR
trap 'exit 130' INT
trap 'exit 143' TERM
