# shellcheck shell=bash
#
# The steps that scenarios with containers share. Each scenario is a program that begins with this file, and needs the image in SLUICE_IMAGE, which
# scripts/integration.sh sets. All its containers belong to a docker-compose project with its own name, and are removed when it ends.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SCENARIO=$(basename "$0" .sh)
: "${SLUICE_IMAGE:?name the image to try; scripts/integration.sh does}"
PROJECT=sluice-$SCENARIO-$$
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sluice-integration.XXXXXX")
# The broker uses any free port of this machine, on loopback.
export SLUICE_IMAGE SLUICE_PORT='' SLUICE_ADMIN_PORT=''
if command -v docker-compose >/dev/null; then COMPOSE=(docker-compose); else COMPOSE=(docker compose); fi

# shellcheck source=scripts/integration/steps.sh
. "$TOP/scripts/integration/steps.sh"

# The compose file on which a scenario is based.
COMPOSE_FILE_OF_SCENARIO=$TOP/Docker/compose.yaml
COMPOSE_CHANGES=$TOP/scripts/integration/compose.yaml
# The network of the clients, and the address to which they connect.
NETWORK=default SERVER=broker:7420
# The services whose last log lines are printed when the scenario fails.
SERVICES=(broker)

# The compose file of a scenario, with the changes here and those that it passed to `settings`.
compose() {
  local files=(-f "$COMPOSE_FILE_OF_SCENARIO" -f "$COMPOSE_CHANGES")
  if [ -e "$WORK/settings.yaml" ]; then files+=(-f "$WORK/settings.yaml"); fi
  "${COMPOSE[@]}" --project-name "$PROJECT" "${files[@]}" "$@" 2>>"$WORK/compose.log"
}

# Reads more of a compose file from standard input.
settings() { cat >"$WORK/settings.yaml"; }

# SERVICE: its container, running or not.
container() {
  docker ps --all --quiet --filter "label=com.docker.compose.project=$PROJECT" --filter "label=com.docker.compose.service=$1"
}
broker() { container broker; }

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
  docker run --interactive --rm --name "$PROJECT-$name" --label "sluice=$PROJECT" --network "${PROJECT}_$NETWORK" \
    --read-only --cap-drop ALL --env SLUICE_SERVER="$SERVER" "${OPTIONS[@]}" --entrypoint sluice "$SLUICE_IMAGE" "$@"
}

# Nothing, unless the scenario took disks.
unmount_disks() { :; }

finish() {
  local code=$? file service container containers
  trap - EXIT INT TERM
  if [ "$code" -ne 0 ]; then
    for file in "$WORK"/*.err "$WORK/compose.log"; do
      if [ -s "$file" ]; then
        echo "--- ${file##*/}"
        tail -n 20 "$file"
      fi
    done
    for service in "${SERVICES[@]}"; do
      for container in $(container "$service"); do
        echo "--- $service"
        docker logs --tail 30 "$container" 2>&1 || true
      done
    done
  fi
  containers=$(docker ps --all --quiet --filter "label=sluice=$PROJECT")
  # shellcheck disable=SC2086 # a word each
  if [ -n "$containers" ]; then docker rm --force $containers >/dev/null 2>&1 || true; fi
  compose down --volumes --timeout 5 || true
  unmount_disks
  wait
  rm -rf "$WORK"
  exit "$code"
}
trap finish EXIT
trap 'say "FAILED: $BASH_COMMAND"' ERR
trap 'exit 130' INT
trap 'exit 143' TERM
