#!/usr/bin/env bash
# Runs a cluster of three servers of the engine and three brokers under load, takes processes away again and again, and compares what is there in the end
# with what was acknowledged.
#
#   scripts/cluster-kills.sh [ROUNDS]     default: 60; SLUICE_SEED=N repeats a run
#
#   SLUICE_CLUSTER_KINDS=LIST   only these, with commas between them: kill-node, pause-node, stop-node, kill-engine, kill-nodes, kill-all
#
# The tests do the same with 3 rounds. Prints how long all topics together needed to go on after each loss, the medians, and how many acknowledged records
# were lost, doubled or out of order. Exits 1 when there was any.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-60}
case $rounds in
*[!0-9]* | '')
  echo "usage: scripts/cluster-kills.sh [ROUNDS]" >&2
  exit 2
  ;;
esac

scripts/nats-server.sh >/dev/null
swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
SLUICE_CLUSTER_ROUNDS=$rounds swift test --skip-build --scratch-path .build/strict --filter 'ClusterKillTests' </dev/null
