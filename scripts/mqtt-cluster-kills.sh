#!/usr/bin/env bash
# Kills nodes of a cluster under the load of MQTT clients, and lets the clients connect to other nodes: acknowledged messages arrive, at QoS 2 exactly once.
#
#   scripts/mqtt-cluster-kills.sh [--kills N] [--qos 1|2]
#
# Starts a cluster of its own (three servers of the engine and three brokers), with a paho client that publishes and one that subscribes, both with sessions.
# N times (default 20) it kills a node and starts it again: in turns the publisher's, the subscriber's, and a random one. A client whose node is killed connects
# to the next one. At the end it prints which messages were lost and which were duplicated, and fails if that violates the QoS.
#
#   SLUICE_BIN_DIR=FOLDER        the folder with sluiced, instead of building it
#   SLUICE_CLUSTER_PORT=N        as for scripts/cluster.sh; default: 15222
#   SLUICE_CLUSTER_NODE_PORT=N   as for scripts/cluster.sh; default: 18420
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "mqtt-cluster-kills: $*" >&2; exit 1; }

kills=20 qos=2
while [ $# -gt 0 ]; do
  case $1 in
  --kills) kills=${2:?"--kills needs a number"}; shift ;;
  --qos) qos=${2:?"--qos needs 1 or 2"}; shift ;;
  --help | -h) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
  *) fail "there is no option '$1'; there are --kills and --qos" ;;
  esac
  shift
done

export SLUICE_CLUSTER_PORT=${SLUICE_CLUSTER_PORT:-15222} SLUICE_CLUSTER_NODE_PORT=${SLUICE_CLUSTER_NODE_PORT:-18420}
SLUICE_CLUSTER_DIR=$(mktemp -d)
export SLUICE_CLUSTER_DIR
load=
cleanup() {
  trap - EXIT INT TERM
  [ -z "$load" ] || kill "$load" 2>/dev/null || true
  scripts/cluster.sh erase >/dev/null 2>&1 || true
  rm -rf "$SLUICE_CLUSTER_DIR"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

clients=$(scripts/door-clients.sh)
scripts/cluster.sh up --doors >"$SLUICE_CLUSTER_DIR/lines"
ports=$(sed -nE 's/^door b[0-9] mqtt:.*:([0-9]+)$/\1/p' "$SLUICE_CLUSTER_DIR/lines" | tr '\n' ' ')

mkfifo "$SLUICE_CLUSTER_DIR/orders"
# shellcheck disable=SC2086 # a port each
PYTHONPATH=$clients python3 scripts/cluster/mqtt-load.py "$qos" $ports <"$SLUICE_CLUSTER_DIR/orders" >"$SLUICE_CLUSTER_DIR/load" 2>"$SLUICE_CLUSTER_DIR/errors" &
load=$!
exec 4>"$SLUICE_CLUSTER_DIR/orders"

# The last value that the load printed for a name.
last() { sed -nE "s/^$1 ([0-9]+)$/\1/p" "$SLUICE_CLUSTER_DIR/load" | tail -n 1; }

await() { # NAME VALUE: until the value is at least that
  for _ in $(seq 1200); do
    kill -0 "$load" 2>/dev/null || { cat "$SLUICE_CLUSTER_DIR/errors" >&2; fail "the clients have ended"; }
    [ "$(last "$1")" -lt "$2" ] 2>/dev/null || [ -z "$(last "$1")" ] || return 0
    sleep 0.1
  done
  tail -n 5 "$SLUICE_CLUSTER_DIR"/b?.log >&2
  fail "$1 is $(last "$1") instead of $2 after two minutes"
}

await ready 1
for kill in $(seq "$kills"); do
  await acknowledged $(($(last acknowledged || echo 0) + 50 + RANDOM % 200))
  case $((kill % 3)) in
  0) node=b$((RANDOM % 3 + 1)) ;;
  1) node=b$(($(last writer) + 1)) ;;
  2) node=b$(($(last reader) + 1)) ;;
  esac
  kill -9 "$(sed -nE "s/^node $node .* ([0-9]+)$/\1/p" "$SLUICE_CLUSTER_DIR/lines")"
  echo "mqtt-cluster-kills: killed $node ($kill of $kills) at message $(last acknowledged)" >&2
  # Either the others take over the shards, or the node itself restarts first.
  sleep "0.$((RANDOM % 10))"
  [ $((kill % 2)) -eq 0 ] || sleep 4
  scripts/cluster.sh up 4>&- >"$SLUICE_CLUSTER_DIR/lines"
done
echo end >&4
exec 4>&-
wait "$load" && result=0 || result=$?
load=
tail -n 1 "$SLUICE_CLUSTER_DIR/load"
[ "$result" -eq 0 ] || { cat "$SLUICE_CLUSTER_DIR/errors" >&2; fail "QoS $qos isn't kept"; }
