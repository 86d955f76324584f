#!/usr/bin/env bash
# Runs a cluster of three servers of the engine and three brokers under load. Again and again it kills processes, cuts networks and takes power away, and
# compares the stored records with the acknowledged ones. Then it pauses owners for longer than their leases, resumes them, and checks their effects.
#
#   scripts/cluster-kills.sh [ROUNDS [TRIES]]     default: 68 rounds, which is 4 of each kind, and 20 tries; 0 skips that part; SLUICE_SEED=N repeats a run
#
#   SLUICE_CLUSTER_KINDS=LIST   only these, separated by commas:
#                               kill-node, pause-node, stop-node, drain-node, kill-nodes     nodes: killed, paused beyond their leases, stopped in order
#                               kill-engine, kill-all, lose-power                            servers of the engine, everything, the servers' disks
#                               cut-node-from-nodes, cut-node-from-engine, cut-node          a node from some or all others
#                               cut-engine-server, cut-site                                  a server from the others; a node and a server from the others
#                               lose-to-engine, lose-from-engine                             packets in one direction
#                               roll-nodes, roll-engine                                      all replaced, one after the other
#   SLUICE_BIN_DIR=FOLDER       sluiced from there, such as of a release build, instead of the tests' own
#
# Cuts and losses of power need root, and are skipped without it. For cuts, each process is in a network namespace of its own. For losses of power, each server
# stores on ext4 in a file.
#
# The tests do the same with a round of each kind and 2 tries. After each loss, the script prints how long it took until all topics worked again: publishing,
# delivery by the owner, and delivery by a node that wasn't lost. For planned changes, it prints the longest time without a record of one producer. At the end
# come the medians, and how many acknowledged records were lost, duplicated or out of order. Exits 1 when there was any.
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
