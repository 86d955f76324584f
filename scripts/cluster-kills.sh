#!/usr/bin/env bash
# Runs a cluster of three servers of the engine and three brokers under load, takes processes, cables and power away again and again, and compares what is
# there in the end with what was acknowledged. Then wakes owners up that were paused for longer than their leases, and looks at what they do.
#
#   scripts/cluster-kills.sh [ROUNDS [TRIES]]     default: 68 rounds, which is 4 of each kind, and 20 tries; 0 leaves that part out; SLUICE_SEED=N repeats a run
#
#   SLUICE_CLUSTER_KINDS=LIST   only these, with commas between them:
#                               kill-node, pause-node, stop-node, drain-node, kill-nodes     nodes without notice, beyond their leases, in order
#                               kill-engine, kill-all, lose-power                            servers of the engine, everything, the servers' disks
#                               cut-node-from-nodes, cut-node-from-engine, cut-node          a node without some or all others
#                               cut-engine-server, cut-site                                  a server without the others; a node and a server without the others
#                               lose-to-engine, lose-from-engine                             packets in one direction
#                               roll-nodes, roll-engine                                      each one replaced, one after the other
#   SLUICE_BIN_DIR=FOLDER       sluiced from there, such as of a release build, instead of the tests' own
#
# Root only: cuts, each process is in a network namespace of its own; losses of power, each server stores on ext4 in a file. Both are skipped without.
#
# The tests do the same with a round of each kind and 2 tries. Prints how long all topics together needed to go on after each loss: publishing, delivering to
# subscribers that go to the owner, and relaying to those at another node than the one that was lost; of what is planned, the longest time without a record of one
# producer. Then the medians, and how many acknowledged records were lost, doubled or out of order. Exits 1 when there was any.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

rounds=${1:-68} tries=${2:-20}
case $rounds$tries in
*[!0-9]*)
  echo "usage: scripts/cluster-kills.sh [ROUNDS [TRIES]]" >&2
  exit 2
  ;;
esac

scripts/nats-server.sh >/dev/null
swift build --build-tests "${strict[@]}" </dev/null
export SLUICE_CLUSTER_ROUNDS=$rounds SLUICE_STALE_TRIES=$tries
filters=()
[ "$rounds" -eq 0 ] || filters+=(--filter 'IntegrationTests[.]ClusterKillTests')
[ "$tries" -eq 0 ] || filters+=(--filter 'IntegrationTests[.]StaleOwnerTests')
[ ${#filters[@]} -eq 0 ] || swift test --skip-build "${strict[@]}" --no-parallel "${filters[@]}" </dev/null
