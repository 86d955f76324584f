# shellcheck shell=bash
# The steps of a cluster's scenarios with the processes of scripts/cluster.sh: see cluster.sh. SLUICE_BIN_DIR is the folder of sluiced and sluice.
set -euo pipefail

TOP=$(cd "$SCENARIO_FOLDER/../.." && pwd)
SCENARIO=$(basename "$0" .sh)
: "${SLUICE_BIN_DIR:?name the folder with sluiced and sluice; scripts/cluster-scenarios.sh does}"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sluice-integration.XXXXXX")
# shellcheck source=scripts/integration/steps.sh
. "$TOP/scripts/integration/steps.sh"

ENGINES=(n1 n2 n3)
SLUICE=$SLUICE_BIN_DIR/sluice
# A connection that is silent for this long is closed.
export SLUICE_KEEPALIVE=2s
export SLUICE_CLUSTER_DIR=$WORK/cluster SLUICE_CLUSTER_OWNER=$$
export SLUICE_TLS_CA=$SLUICE_CLUSTER_DIR/nodes/authority.pem SLUICE_USER=admin SLUICE_PASSWORD_FILE=$SLUICE_CLUSTER_DIR/admin-password
export SLUICE_CLUSTER_HOST=127.$((100 + $$ / 200 % 100)).$((1 + $$ % 200)).1
CUT_OBSTACLE=''
if CUT_OBSTACLE=$("$TOP/scripts/cluster.sh" can-cut 2>&1); then
  export SLUICE_CLUSTER_NETWORK=10.$((150 + $$ / 200 % 50)).$((1 + $$ % 200))
fi

members() { "$TOP/scripts/cluster.sh" "$@" >"$WORK/members" 2>>"$WORK/cluster.err"; }

# Starts the members that don't run, and waits until each node is in the cluster.
start_members() {
  members up --secure
  cp "$WORK/members" "$WORK/all-members"
}

servers() { # NODE...
  local node all=''
  for node in "$@"; do all="$all,$(sed -n "s/^node $node \([^ ]*\) .*/\1/p" "$WORK/all-members")"; done
  echo "${all#,}"
}

# NAME ARGUMENT...: sluice, with this standard input and output.
client() {
  shift
  SLUICE_SERVER=${SERVER:-$(servers b1 b2 b3)} "$SLUICE" "$@"
}

# Before the servers of the engine start, gives each a disk of its own that can lose power.
take_disks() {
  local obstacle
  obstacle=$("$TOP/scripts/cluster.sh" can-lose-power 2>&1) || skip "${obstacle#cluster.sh: }"
  export SLUICE_CLUSTER_DISK=512
}
# Cuts the power of these disks, and kills all members.
lose_power_of_members() { members lose-power; }

process() { cat "$SLUICE_CLUSTER_DIR/$1.pid"; } # NAME
# shellcheck disable=SC2046 # a word each
kill_members() { kill -KILL $(for name in "$@"; do process "$name"; done); } # NAME...
pause_member() { kill -STOP "$(process "$1")"; } # NAME
wake_member() { kill -CONT "$(process "$1")"; } # NAME
has_ended() { ! kill -0 "$1" 2>/dev/null; } # PID

# The program of another folder replaces it.
replace_member() { # NAME
  local pid
  mkdir -p "$WORK/programs"
  cp --update "${SLUICE_NEXT_BIN_DIR:-$SLUICE_BIN_DIR}/sluiced" "$SLUICE_BIN_DIR/sluice" "$WORK/programs/"
  pid=$(process "$1")
  kill -TERM "$pid"
  eventually "$1 has ended" has_ended "$pid"
  SLUICE_BIN_DIR=$WORK/programs members up --secure
}

cut_between() { # NODE NAME...
  local node=$1 name cuts=()
  shift
  [ -n "${SLUICE_CLUSTER_NETWORK:-}" ] || skip "${CUT_OBSTACLE#cluster.sh: }"
  for name in "$@"; do
    if [ "$name" != "$node" ]; then cuts+=("$node" "$name" "$name" "$node"); fi
  done
  members cut "${cuts[@]}"
}
cut_from_nodes() { cut_between "$1" "${NODES[@]}"; } # NODE
cut_from_engine() { cut_between "$1" "${ENGINES[@]}"; } # NODE
heal() { members heal; } # NODE

# The server that the others elected last.
engine_leader() {
  local name
  for name in "${ENGINES[@]}"; do
    sed -n "s/^\[[0-9]*\] \(.*\) \[INF\] Self is new JetStream cluster metadata leader.*/\1 $name/p" "$SLUICE_CLUSTER_DIR/$name.log"
  done | sort | tail -n 1 | sed 's/.* //'
}

# Waits until all servers of the engine have the same data.
await_copies() { members await-copies; }

finish() {
  local code=$? file
  trap - EXIT INT TERM
  if [ "$code" -ne 0 ]; then
    for file in "$WORK"/*.err "$SLUICE_CLUSTER_DIR"/b*.log; do
      if [ -s "$file" ]; then
        echo "--- ${file##*/}"
        tail -n 20 "$file"
      fi
    done
  fi
  # shellcheck disable=SC2046 # a word each
  kill $(jobs -p) 2>/dev/null || true
  "$TOP/scripts/cluster.sh" erase >/dev/null || true
  wait
  rm -rf "$WORK"
  exit "$code"
}
trap finish EXIT
trap 'say "FAILED: $BASH_COMMAND"' ERR
trap 'exit 130' INT
trap 'exit 143' TERM
