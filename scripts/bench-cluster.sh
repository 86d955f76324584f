#!/usr/bin/env bash
# Measures a cluster on this machine: three servers of the engine and three brokers, which it starts and stops, and, in turns, JetStream itself on the same
# servers.
#
#   scripts/bench-cluster.sh [--rounds N] [--seconds S] [--rows TEXT]
#
# Prints the medians of N rounds (default 3) of S seconds each (default 2):
#
#   fan-out    100 subscribers of a topic in memory, 128 B: all at the owner, all at another node, spread over the three nodes
#   latency    one publisher and one subscriber, 2,000 records/s: at the owner; with the subscriber at another node; for comparison, the round trip of a
#              server that copies bytes from one connection to another. All processes share a processor. Otherwise each result is one of two, depending on
#              where the kernel places them, and most of it is the time to wake another processor
#   durable    publishing of 128 B records, acknowledged when they are stored: by one publisher and by eight, to the owners and through one node;
#              JetStream with one message per record; and JetStream with messages as large as the brokers' commits and as many unacknowledged bytes
#   rest       processor time and memory of the idle brokers and the idle engine
#
# --rows TEXT measures only the rows with TEXT in their names. SLUICE_BIN_DIR=FOLDER contains sluiced, sluice and sluice-bench; without it they are built for
# release. Ports: 14222 to 14227 and 17420 to 17441.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "bench-cluster: $*" >&2; exit 1; }

rounds=3 seconds=2 only=
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=${2:?"--rounds needs a number"}; shift ;;
    --seconds) seconds=${2:?"--seconds needs a number"}; shift ;;
    --rows) only=${2:?"--rows needs a text"}; shift ;;
    --help | -h) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    *) fail "there is no option '$1'; there are --rounds, --seconds and --rows" ;;
  esac
  shift
done

if [ -z "${SLUICE_BIN_DIR:-}" ]; then
  swift build -c release --product sluiced >&2
  swift build -c release --product sluice >&2
  swift build -c release --package-path Benchmarks --scratch-path .build/bench --product sluice-bench >&2
  SLUICE_BIN_DIR=$(mktemp -d)
  trap 'rm -rf "$SLUICE_BIN_DIR"' EXIT
  cp "$(swift build -c release --show-bin-path)"/{sluiced,sluice} "$SLUICE_BIN_DIR"
  cp "$(swift build -c release --package-path Benchmarks --scratch-path .build/bench --show-bin-path)/sluice-bench" "$SLUICE_BIN_DIR"
fi
export SLUICE_BIN_DIR
export SLUICE_CLUSTER_DIR
SLUICE_CLUSTER_DIR=$(mktemp -d)
export SLUICE_CLUSTER_PORT=14222 SLUICE_CLUSTER_NODE_PORT=17420
bench=$SLUICE_BIN_DIR/sluice-bench
results=$SLUICE_CLUSTER_DIR/results

cleanup() {
  trap - EXIT INT TERM
  scripts/cluster.sh erase >/dev/null 2>&1 || true
  rm -rf "$SLUICE_CLUSTER_DIR"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

scripts/cluster.sh up >"$SLUICE_CLUSTER_DIR/lines"
password=$(cat "$SLUICE_CLUSTER_DIR/password")
ports=(17420 17430 17440)

# The port of the node that owns a topic, and of a node that doesn't.
owner_of() { # TOPIC
  local owner
  owner=$("$SLUICE_BIN_DIR/sluice" cluster shards --topic "$1" --json --server "127.0.0.1:${ports[0]}" | sed -E 's/.*"owner":"b([0-9])".*/\1/')
  echo "${ports[$((owner - 1))]}"
}
other_than() { # PORT
  local port
  for port in "${ports[@]}"; do [ "$port" = "$1" ] || { echo "$port"; return; }; done
}

# Adds a number of a report to the list of a row's rounds.
note() { # ROW VALUE
  printf '%s\t%s\n' "$1" "$2" >>"$results"
}
value() { # KEY: of the report on standard input
  sed -nE "s/.*\"$1\":([-0-9.e+]+).*/\1/p"
}
# Restricts the nodes and the engine to these processors.
place() { # PROCESSORS
  local kind name address pid
  while read -r kind name address pid; do
    taskset -a -c -p "$1" "$pid" >/dev/null || fail "$kind $name ($address) can't be moved to processor $1"
  done <"$SLUICE_CLUSTER_DIR/lines"
}
wanted() { case $1 in *"$only"*) return 0 ;; *) return 1 ;; esac; }

fanout() { # ROW OWNER SUBSCRIBERS' PORTS
  wanted "$1" || return 0
  note "$1" "$("$bench" load --json --driver sluice --port "$2" --subscriber-ports "$3" --subscribers 100 --seconds "$seconds" --topic fanout | value deliveredPerSecond)"
}
latency() { # ROW OWNER SUBSCRIBER'S PORT
  wanted "$1" || return 0
  note "$1" "$(taskset -c 0 "$bench" load --json --driver sluice --port "$2" --subscriber-ports "$3" --workload latency --rate 2000 --seconds "$seconds" --topic latency | value p50)"
}
round_trip() { # ROW
  wanted "$1" || return 0
  note "$1" "$(taskset -c 0 "$bench" load --json --driver copy --launch "{self} copy-server --port {port}" --workload latency --rate 2000 --seconds "$seconds" | value p50)"
}

# Commits of all nodes so far, and bytes of records that they received from clients.
commits() {
  local port sum=0 count
  for port in "${ports[@]}"; do
    count=$(curl -fsS "http://127.0.0.1:$((port + 1))/metrics" | sed -nE 's/^sluice_broker_commits_total ([0-9]+).*/\1/p')
    sum=$((sum + count))
  done
  echo "$sum"
}

publish() { # ROW DRIVER PORT PUBLISHERS MORE…
  local row=$1 driver=$2 port=$3 publishers=$4
  shift 4
  "$bench" load --json --driver "$driver" --port "$port" --workload publish --publishers "$publishers" --topics "$publishers" \
    --seconds "$seconds" --warmup 0.5 --patience 60 "$@"
}

# The limit of unacknowledged records of all publishers together: 8.6 MB, like the bare client, but at least four messages per publisher, which sluice-bench
# always allows.
window=65536
durable() { # PUBLISHERS
  local n=$1 row="durable, $1 to $1" before after report records commits_made size rate bare
  wanted "$row" || return 0
  before=$(commits)
  report=$(publish "$row" sluice "${ports[0]}" "$n" --durable --size 128 --window "$window" --topic "durable$n")
  after=$(commits)
  records=$(value published <<<"$report")
  rate=$(value deliveredPerSecond <<<"$report")
  note "$row: through one node, records/s" "$rate"
  commits_made=$((after - before))
  # A record has a word of 4 bytes before its payload.
  size=$((records * 132 / commits_made))
  [ "$size" -le 1000000 ] || size=1000000
  note "$row: bytes in a commit" "$size"
  note "$row: MB/s in commits" "$(awk -v r="$rate" 'BEGIN { print r * 132 / 1e6 }')"
  report=$(publish "$row" jetstream 14222 "$n" --login "sluice:$password" --replicas 3 --size "$size" --contained 132 --batch 1 --window $((window * 132 / size)) --topic "bare$n")
  bare=$(value deliveredPerSecond <<<"$report")
  note "$row: MB/s of a bare client in messages of that size" "$(awk -v r="$bare" -v s="$size" 'BEGIN { print r * s / 1e6 }')"
  report=$(publish "$row" jetstream 14222 "$n" --login "sluice:$password" --replicas 3 --size 128 --topic "single$n")
  note "$row: JetStream with one message a record, records/s" "$(value deliveredPerSecond <<<"$report")"
  if [ "$n" = 1 ]; then
    report=$(publish "$row" sluice "$(owner_of durable1)" 1 --durable --size 128 --window "$window" --topic durable1)
    note "$row: to the owner, records/s" "$(value deliveredPerSecond <<<"$report")"
  fi
}

# Processor time in ticks of 10 ms, and resident KiB.
usage_of() { # PID
  awk '{ print $14 + $15 }' "/proc/$1/stat"
}
resident() { # PID
  sed -nE 's/^VmRSS:\s+([0-9]+) kB/\1/p' "/proc/$1/status"
}
rest() {
  wanted "rest" || return 0
  local kind name address pid
  declare -A before
  while read -r kind name address pid; do before[$pid]=$(usage_of "$pid"); done <"$SLUICE_CLUSTER_DIR/lines"
  sleep 10
  while read -r kind name address pid; do
    note "rest: $kind, ms of processor time a second" $(($(usage_of "$pid") - before[$pid]))
    note "rest: $kind, MB resident" $(($(resident "$pid") / 1000))
  done <"$SLUICE_CLUSTER_DIR/lines"
}

: >"$results"
rest
owner=$(owner_of fanout) other=$(other_than "$(owner_of fanout)")
late=$(owner_of latency) far=$(other_than "$(owner_of latency)")
for round in $(seq "$rounds"); do
  echo "bench-cluster: round $round of $rounds" >&2
  fanout "fan-out 1x100: with the owner, records/s" "$owner" "$owner"
  fanout "fan-out 1x100: with another node, records/s" "$owner" "$other"
  fanout "fan-out 1x100: spread over three nodes, records/s" "$owner" "$(IFS=,; echo "${ports[*]}")"
  place 0
  latency "latency p50, µs: with the owner" "$late" "$late"
  latency "latency p50, µs: with another node" "$late" "$far"
  round_trip "latency p50, µs: copied by a server, a round trip"
  place "0-$(($(nproc) - 1))"
  durable 1
  durable 8
done

echo "$(nproc) processors, load average $(cut -d' ' -f1-3 /proc/loadavg); medians of $rounds rounds"
awk -F'\t' '{ if (!($1 in n)) order[++rows] = $1; v[$1, ++n[$1]] = $2 }
  END {
    for (r = 1; r <= rows; r++) {
      key = order[r]; count = n[key]
      for (i = 1; i <= count; i++) a[i] = v[key, i] + 0
      for (i = 1; i < count; i++) for (j = i + 1; j <= count; j++) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
      printf "%-75s %14.1f\n", key, a[int((count + 1) / 2)]
    }
  }' "$results"
