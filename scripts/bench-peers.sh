#!/usr/bin/env bash
# Runs the same windowed, lossless load against Sluice and other brokers on this machine, in turn, in several rounds, and
# prints medians and ratios. Everything listens on loopback, on its own ports, and works in a temporary directory that is
# removed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
scripts/bench-peers.sh [options]
  --servers LIST     of sluice,copy,nats,redis-pubsub,redis-streams,rabbitmq-streams,mosquitto (default: all these), and
                     mosquitto-qos1,sluice-mqtt,sluice-mqtt-qos1,sluice-http
  --workloads LIST   of 1x1-128,1x8-128,1x100-128,1x100-16,1x1-1k,1x8-1k,1x8-16k,replay-128,replay-1k,replay-16k,
                     latency,idle (default: all these), latency-apart, 1x1000-128, slow-reader, publish-100 (of servers that confirm: 16 publishers,
                     100 records at a time)
                     In latency the server shares a processor with the load, in latency-apart it has one of its own: where the kernel
                     puts them would otherwise decide more than the server does
  --rounds N         of all workloads on all servers; medians are over rounds (default 3)
  --seconds S        measured in each run, after half a second (default 2)
  --quick            one round, half a second, a tenth of the connections and of the replay
  --json FILE        the summary, with every run, as JSON
  --sluiced PATH     the broker to measure (default .build/release/sluiced, built first)
  --no-install       fail instead of installing what is missing with apt-get
EOF
}

SERVERS=sluice,copy,nats,redis-pubsub,redis-streams,rabbitmq-streams,mosquitto
WORKLOADS=1x1-128,1x8-128,1x100-128,1x100-16,1x1-1k,1x8-1k,1x8-16k,replay-128,replay-1k,replay-16k,latency,idle
ROUNDS=3 SECONDS_EACH=2 WARMUP=0.5 JSON= SLUICED= INSTALL=yes CONNECTIONS=10000 REPLAY_BYTES=536870912
while [ $# -gt 0 ]; do
  case $1 in
    --servers) SERVERS=$2; shift ;;
    --workloads) WORKLOADS=$2; shift ;;
    --rounds) ROUNDS=$2; shift ;;
    --seconds) SECONDS_EACH=$2; shift ;;
    --quick) ROUNDS=1 SECONDS_EACH=0.5 WARMUP=0.2 CONNECTIONS=1000 REPLAY_BYTES=53687091 ;;
    --json) JSON=$2; shift ;;
    --sluiced) SLUICED=$2; shift ;;
    --no-install) INSTALL=no ;;
    --help | -h) usage; exit 0 ;;
    *) echo "bench-peers: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
IFS=, read -ra SERVERS <<<"$SERVERS"
IFS=, read -ra WORKLOADS <<<"$WORKLOADS"
for name in "${SERVERS[@]}"; do
  case $name in
    sluice | copy | nats | redis-pubsub | redis-streams | rabbitmq-streams | mosquitto) ;;
    mosquitto-qos1 | sluice-mqtt | sluice-mqtt-qos1 | sluice-http) ;;
    *) echo "bench-peers: unknown server $name" >&2; exit 2 ;;
  esac
done

say() { echo "bench-peers: $*" >&2; }

# --- Cleaning up: only what this script started, by process id.

DIR=$(mktemp -d "${TMPDIR:-/tmp}/bench-peers.XXXXXX")
PIDS=()        # everything that runs now
RABBIT_PID=    # the Erlang machine, kept over all rounds
RABBIT_PORT=
POLICY_MADE=

stop() { # PID [seconds]
  local pid=$1 tries=$(( ${2:-5} * 20 ))
  kill -CONT "$pid" 2>/dev/null || true
  kill -TERM "$pid" 2>/dev/null || true
  while [ "$tries" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; tries=$((tries - 1)); done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  local left=() other
  for other in "${PIDS[@]}"; do [ "$other" = "$pid" ] || left+=("$other"); done
  PIDS=("${left[@]}")
}

cleanup() {
  trap - EXIT INT TERM
  local pid
  [ -z "$RABBIT_PID" ] || stop "$RABBIT_PID" 15
  for pid in "${PIDS[@]}"; do stop "$pid"; done
  [ -z "$POLICY_MADE" ] || rm -f /usr/sbin/policy-rc.d
  rm -rf "$DIR"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- Requirements

missing=()
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing+=("$2"); }
for name in "${SERVERS[@]}"; do
  case $name in
    nats) need nats-server nats-server ;;
    redis-*) need redis-server redis-server ;;
    rabbitmq-streams) need rabbitmq-server rabbitmq-server ;;
    mosquitto*) need mosquitto mosquitto ;;
  esac
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$INSTALL" = yes ] || { say "missing: ${missing[*]}"; exit 1; }
  say "installing ${missing[*]}"
  # Debian starts a service when it is installed, unless this file forbids it.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    POLICY_MADE=yes
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$DIR/apt.log" 2>&1 ||
    { tail -20 "$DIR/apt.log" >&2; say "apt-get failed"; exit 1; }
  if [ -n "$POLICY_MADE" ]; then rm -f /usr/sbin/policy-rc.d; POLICY_MADE=; fi
fi
PATH=$PATH:/usr/sbin

if [ -z "$SLUICED" ]; then
  SLUICED=.build/release/sluiced
  swift build -c release --product sluiced >"$DIR/build.log" 2>&1 || { tail -20 "$DIR/build.log" >&2; exit 1; }
fi
swift build -c release --package-path Benchmarks --product sluice-bench >"$DIR/build.log" 2>&1 || { tail -20 "$DIR/build.log" >&2; exit 1; }
BENCH=Benchmarks/.build/release/sluice-bench

# Each side needs a descriptor for every connection.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
# All of them come from one address.
export SLUICED_MAX_CONNECTIONS_PER_ADDRESS=16384
FILES=$(ulimit -n)
if [ "$FILES" != unlimited ] && [ "$FILES" -lt $((CONNECTIONS + 500)) ]; then
  CONNECTIONS=$((FILES - 500))
  say "open files are limited to $FILES: idle connections are $CONNECTIONS"
fi

# --- Servers. Each start_ sets PID and PORT.

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() {
  local port
  while true; do
    port=$((20000 + RANDOM % 10000))
    listens "$port" || { echo "$port"; return; }
  done
}

started() { # PID PORT seconds name
  local tries=$(($3 * 20))
  while ! listens "$2"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ] || ! kill -0 "$1" 2>/dev/null; then
      say "$4 did not start:"
      tail -20 "$DIR/$4.log" >&2
      return 1
    fi
    sleep 0.05
  done
}

start_sluice() {
  "$SLUICED" --listen "${1:-}127.0.0.1:$PORT" --admin off >"$DIR/sluice.log" 2>&1 &
}

start_copy() {
  "$BENCH" copy-server --port "$PORT" >"$DIR/copy.log" 2>&1 &
}

start_nats() {
  # Lossless: the broker waits for a slow subscriber instead of dropping it.
  cat >"$DIR/nats.conf" <<EOF
host: 127.0.0.1
port: $PORT
max_connections: 64000
max_pending: 256MB
write_deadline: "60s"
EOF
  nats-server -c "$DIR/nats.conf" >"$DIR/nats.log" 2>&1 &
}

start_redis() {
  redis-server --bind 127.0.0.1 --port "$PORT" --dir "$DIR" --save '' --appendonly no --maxclients 15000 \
    --client-output-buffer-limit pubsub 0 0 0 >"$DIR/redis.log" 2>&1 &
}

start_mosquitto() { # workload
  cat >"$DIR/mosquitto.conf" <<EOF
listener $PORT 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
persistence false
log_dest none
user $(id -un)
EOF
  # Without this option Mosquitto delays packets to send several together, which is wrong for latency only.
  if [[ $1 == latency* ]]; then echo "set_tcp_nodelay true" >>"$DIR/mosquitto.conf"; fi
  mosquitto -c "$DIR/mosquitto.conf" >"$DIR/mosquitto.log" 2>&1 &
}

# RabbitMQ takes seconds to start. So it is started once, and stopped by a signal while others are measured. Its streams are
# files, here in the page cache.
start_rabbitmq() {
  local dir=$DIR/rabbitmq script
  script=$(ls /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server | tail -1)
  mkdir "$dir"
  RABBIT_PORT=$(free_port)
  echo '[rabbitmq_stream].' >"$dir/plugins"
  cat >"$dir/rabbitmq.conf" <<EOF
listeners.tcp.1 = 127.0.0.1:$(free_port)
stream.listeners.tcp.1 = 127.0.0.1:$RABBIT_PORT
log.file.level = error
EOF
  export ERL_EPMD_PORT ERL_EPMD_ADDRESS=127.0.0.1
  ERL_EPMD_PORT=$(free_port)
  epmd >"$dir/epmd.log" 2>&1 &
  PIDS+=($!)
  HOME=$dir RABBITMQ_NODENAME=bench-peers@localhost RABBITMQ_DIST_PORT=$(free_port) \
    RABBITMQ_CONF_ENV_FILE=$dir/none RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf \
    RABBITMQ_ENABLED_PLUGINS_FILE=$dir/plugins RABBITMQ_MNESIA_BASE=$dir/mnesia RABBITMQ_LOG_BASE=$dir/log \
    RABBITMQ_PID_FILE=$dir/pid \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}' \
    "$script" >"$DIR/rabbitmq.log" 2>&1 &
  PIDS+=($!)
  started $! "$RABBIT_PORT" 60 rabbitmq
  RABBIT_PID=$(cat "$dir/pid")
  sleep 2
  kill -STOP "$RABBIT_PID"
}

# --- Workloads

confirms() { case $1 in sluice | *-qos1 | sluice-http | redis-*) true ;; *) false ;; esac }
keeps_records() { case $1 in sluice | redis-streams | rabbitmq-streams) true ;; *) false ;; esac }

load_options() { # workload
  case $1 in
    1x*) local shape=${1%-*} size=${1#*-}
      echo "--subscribers ${shape#1x} --size ${size/k/ * 1024}" ;;
    replay-*) local size=${1#*-}
      size=$((${size/k/ * 1024}))
      echo "--workload replay --size $size --records $((REPLAY_BYTES / size))" ;;
    latency | latency-apart) echo "--workload latency --rate 10000 --size 128" ;;
    idle) echo "--workload idle-memory --subscribers $CONNECTIONS" ;;
    publish-*) echo "--workload publish --publishers 16 --batch ${1#*-} --size 128" ;;
    slow-reader) echo "--workload slow-reader --subscribers 8 --stalled 1 --size 1024" ;;
    *) say "unknown workload $1"; exit 2 ;;
  esac
}

run() { # workload server
  local workload=$1 server=$2 options pid
  case $workload in
    replay-*) keeps_records "$server" || return 0 ;;
    idle | slow-reader) [ "$server" != copy ] || return 0 ;;
    publish-*) confirms "$server" || return 0 ;;
  esac
  options=$(load_options "$workload")
  # The other brokers acknowledge nothing in this load.
  if [[ $workload == latency* && $server = sluice ]]; then options="$options --no-acks"; fi
  # RabbitMQ also opens a file for each subscription.
  if [ "$workload-$server" = idle-rabbitmq-streams ] && [ "$FILES" != unlimited ] &&
    [ $((CONNECTIONS * 2 + 1000)) -gt "$FILES" ]; then
    options="--workload idle-memory --subscribers $(((FILES - 1000) / 2))"
  fi
  # In KiB, the size is an expression.
  if [[ $options == *'*'* ]]; then
    options="${options%--size *}--size $((${options##*--size }))"
  fi
  if [ "$server" = rabbitmq-streams ]; then
    PORT=$RABBIT_PORT pid=$RABBIT_PID
    kill -CONT "$pid"
  else
    PORT=$(free_port)
    case $server in
      redis-*) start_redis ;;
      mosquitto*) start_mosquitto "$workload" ;;
      sluice-mqtt*) start_sluice mqtt:// ;;
      sluice-http) start_sluice http:// ;;
      *) "start_$server" ;;
    esac
    pid=$!
    PIDS+=("$pid")
    started "$pid" "$PORT" 15 "${server%-*}" || { FAILED=yes; stop "$pid"; return 0; }
  fi
  local placed=()
  if [[ $workload == latency* ]]; then
    taskset -a -c -p 0 "$pid" >/dev/null
    placed=(taskset -c 0)
    if [ "$workload" = latency-apart ]; then placed=(taskset -c 1); fi
  fi
  # shellcheck disable=SC2086 # options are words
  timeout 180 "${placed[@]}" "$BENCH" load --driver "$server" --port "$PORT" --server-pid "$pid" $options \
    --seconds "$SECONDS_EACH" --warmup "$WARMUP" --json-file "$DIR/runs.jsonl" >&2 ||
    { FAILED=yes; say "$server failed in $workload"; }
  if [ ${#placed[@]} -gt 0 ]; then taskset -a -c -p "0-$(($(nproc) - 1))" "$pid" >/dev/null; fi
  if [ "$server" = rabbitmq-streams ]; then kill -STOP "$pid"; else stop "$pid"; fi
}

FAILED=
for workload in "${WORKLOADS[@]}"; do load_options "$workload" >/dev/null; done
for server in "${SERVERS[@]}"; do
  if [ "$server" = rabbitmq-streams ]; then start_rabbitmq; fi
done
for ((round = 1; round <= ROUNDS; round++)); do
  say "round $round of $ROUNDS"
  for workload in "${WORKLOADS[@]}"; do
    for server in "${SERVERS[@]}"; do run "$workload" "$server"; done
  done
done

[ -s "$DIR/runs.jsonl" ] || { say "nothing was measured"; exit 1; }
if [ -n "$JSON" ]; then
  "$BENCH" summary "$DIR/runs.jsonl" --json "$JSON"
else
  "$BENCH" summary "$DIR/runs.jsonl"
fi
[ -z "$FAILED" ] || { say "some runs failed: see above"; exit 1; }
