#!/usr/bin/env bash
# Runs the scenarios of a cluster with processes on this machine: the same that scripts/integration.sh runs with containers.
#
#   scripts/cluster-scenarios.sh [SCENARIO]...     such as 21-cluster-owner-paused; default: all of them
#
#   SLUICE_BIN_DIR=FOLDER        the folder with sluiced and sluice; default: they are built
#   SLUICE_NEXT_BIN_DIR=FOLDER   the folder with the sluiced of another version, to which 26-cluster-replace changes
#
# Scenarios that cut the network need root, and are skipped without it. All of them are skipped if the engine isn't installed: see scripts/nats-server.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "cluster-scenarios: $*" >&2; }
scenarios=("$@")
if [ $# -eq 0 ]; then
  for file in scripts/integration/[0-9]*-cluster-*.sh; do scenarios+=("$(basename "$file" .sh)"); done
fi
for scenario in "${scenarios[@]}"; do
  if [ ! -x "scripts/integration/$scenario.sh" ]; then
    say "there is no scenario $scenario"
    exit 2
  fi
done
if ! scripts/nats-server.sh --path >/dev/null; then
  say "SKIPPED, none of the scenarios ran"
  exit 0
fi
if [ -z "${SLUICE_BIN_DIR:-}" ]; then
  say "building (the first time takes some minutes)"
  swift build -c release --product sluiced </dev/null >&2
  swift build -c release --product sluice </dev/null >&2
  SLUICE_BIN_DIR=$(swift build -c release --show-bin-path)
fi
SLUICE_BIN_DIR=$(cd "$SLUICE_BIN_DIR" && pwd)
export SLUICE_BIN_DIR SLUICE_SCENARIO_ON=processes
# shellcheck source=scripts/integration/play.sh
. scripts/integration/play.sh
play "${scenarios[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  say "failed: ${failed[*]}"
  exit 1
fi
say "all scenarios passed"
