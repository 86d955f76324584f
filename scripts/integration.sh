#!/usr/bin/env bash
# Runs the broker and its clients in containers, which are paused, killed, cut off and replaced, with the scenarios in
# scripts/integration.
set -euo pipefail

usage() {
  cat <<'END'
scripts/integration.sh [options] [SCENARIO]...     such as 04-network; all of them, unless told
  --image NAME      try this image instead of making one of this machine's build
  --programs DIR    make one of sluiced and sluice from there instead of building them
  --install         have apt-get install docker and docker-compose where they are missing
  --required        fail where there can't be containers, instead of saying so and ending with 0
  --help            this

The scenarios of a cluster need the engine: the image ENGINE_IMAGE, such as nats:2.15.1, or the program that scripts/nats-server.sh installs. Without, they
are skipped. scripts/cluster-scenarios.sh plays the same with processes.

Uses the docker that runs; where none does, and this is root, starts one for as long as it takes, in a folder of its own.
END
}

say() { echo "integration: $*" >&2; }
fail() { say "$*"; exit 1; }
IMAGE='' PROGRAMS='' INSTALL='' REQUIRED='' SCENARIOS=()
while [ $# -gt 0 ]; do
  case $1 in
    --image | --programs)
      [ -n "${2:-}" ] || { say "$1 needs a value"; exit 2; }
      case $1 in --image) IMAGE=$2 ;; --programs) PROGRAMS=$2 ;; esac
      shift
      ;;
    --install) INSTALL=yes ;;
    --required) REQUIRED=yes ;;
    --help | -h) usage; exit 0 ;;
    -*) say "unknown option $1"; usage >&2; exit 2 ;;
    *) SCENARIOS+=("$1") ;;
  esac
  shift
done
if [ -n "$PROGRAMS" ]; then PROGRAMS=$(cd "$PROGRAMS" && pwd) || fail "--programs: there is no such folder"; fi
cd "$(dirname "$0")/.."
if [ ${#SCENARIOS[@]} -eq 0 ]; then
  for file in scripts/integration/[0-9]*.sh; do SCENARIOS+=("$(basename "$file" .sh)"); done
fi
for scenario in "${SCENARIOS[@]}"; do
  [ -x "scripts/integration/$scenario.sh" ] || fail "there is no scenario $scenario"
done

skip() {
  if [ -n "$REQUIRED" ]; then fail "no containers here: $*"; fi
  say "SKIPPED, none of the scenarios ran: $*"
  exit 0
}

# --- Docker

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-docker.XXXXXX")
engine=''
finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$engine" ]; then
    kill "$engine" 2>/dev/null || true
    for _ in $(seq 100); do
      kill -0 "$engine" 2>/dev/null || break
      sleep 0.2
    done
    # Mounts of its containers aren't always released.
    awk -v dir="$work/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do umount "$mounted" || true; done
  fi
  rm -rf "$work" || true
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

has_compose() { command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1; }
has_docker() { command -v docker >/dev/null && has_compose; }
answers() { timeout 10 docker info >/dev/null 2>&1; }

if [ -n "$INSTALL" ] && { ! has_docker || { ! answers && ! command -v dockerd >/dev/null; }; }; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then skip "docker is missing, and isn't installed without root and apt-get"; fi
  say "installing docker.io and docker-compose"
  export DEBIAN_FRONTEND=noninteractive
  { timeout 300 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends docker.io docker-compose iptables; } \
    </dev/null >"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log" >&2; skip "docker couldn't be installed"; }
fi
has_docker || skip "docker and docker-compose aren't installed; --install does that"
if ! answers; then
  command -v dockerd >/dev/null || skip "no docker answers, and there is no dockerd to start; is one running, and may this user use it?"
  [ "$(id -u)" -eq 0 ] || skip "no docker answers, and only root can start one"
  say "starting a docker for the time being"
  export DOCKER_HOST=unix://$work/docker.sock
  dockerd --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/run" --pidfile "$work/pid" >"$work/log" 2>&1 </dev/null &
  engine=$!
  for _ in $(seq 60); do
    if answers || ! kill -0 "$engine" 2>/dev/null; then break; fi
    sleep 0.5
  done
  answers || { tail -n 5 "$work/log" >&2; skip "dockerd doesn't run here"; }
fi

# --- The image

if [ -z "$IMAGE" ]; then
  if [ -z "$PROGRAMS" ]; then
    PROGRAMS=$PWD/.build/programs
    say "building (the first time takes some minutes)"
    scripts/release.sh --no-profile "$PROGRAMS"
  fi
  # The last part of Docker/Dockerfile. Its files were made above, not in a container as in the first part.
  Docker/assemble.sh "$PROGRAMS" "$work/image"
  sed -n '/^FROM \${RUNTIME_IMAGE}/,$p' Docker/Dockerfile |
    sed 's/^FROM .*/FROM scratch/; s|--from=build \(.*\)/image/|\1/|' >"$work/Dockerfile"
  IMAGE=sluice-integration
  docker build --quiet --tag "$IMAGE" --file "$work/Dockerfile" "$work/image" >/dev/null 2>"$work/build.log" ||
    { cat "$work/build.log" >&2; fail "the image can't be made"; }
fi
export SLUICE_IMAGE=$IMAGE

# --- The engine's image, for the scenarios of a cluster

if [ -z "${ENGINE_IMAGE:-}" ] && program=$(scripts/nats-server.sh --path 2>/dev/null); then
  mkdir "$work/engine"
  cp "$program" "$work/engine/nats-server-2.15.1"
  ENGINE_IMAGE=sluice-engine
  docker build --quiet --tag "$ENGINE_IMAGE" --file Docker/engine.Dockerfile "$work/engine" >/dev/null 2>"$work/build.log" ||
    { cat "$work/build.log" >&2; fail "the engine's image can't be made"; }
fi
if [ -n "${ENGINE_IMAGE:-}" ]; then
  export ENGINE_IMAGE
else
  rest=()
  for scenario in "${SCENARIOS[@]}"; do
    case $scenario in
      *-cluster-*) say "SKIPPED $scenario: nats-server isn't installed; run scripts/nats-server.sh, or name an image with ENGINE_IMAGE" ;;
      *) rest+=("$scenario") ;;
    esac
  done
  SCENARIOS=(${rest[@]+"${rest[@]}"})
fi

# --- The scenarios, one after the other

# shellcheck source=scripts/integration/play.sh
. scripts/integration/play.sh
play ${SCENARIOS[@]+"${SCENARIOS[@]}"}
if [ ${#failed[@]} -gt 0 ]; then fail "failed: ${failed[*]}"; fi
say "all scenarios passed"
