#!/usr/bin/env bash
# A cluster on this machine, to try several nodes: three servers of the engine, nats-server, which replicate and sync each write, and three brokers.
#
#   scripts/cluster.sh up        starts what doesn't run, waits until all is ready, and prints a line for each process
#   scripts/cluster.sh status    prints the lines of what runs; fails unless all does
#   scripts/cluster.sh down      stops all of it; what is stored stays
#   scripts/cluster.sh erase     stops all of it and deletes what is stored
#
# The lines are 'engine NAME ADDRESS PID' and 'node NAME ADDRESS PID'. The engine's user is 'sluice' and its password is in FOLDER/password. All listens
# on this machine only. 'up' builds sluiced if it isn't built, and ends when each node is in the cluster and each shard has an owner.
#
#   SLUICE_CLUSTER_DIR=FOLDER    where settings, data, logs and process ids are; default: .build/cluster in the checkout
#   SLUICE_CLUSTER_PORT=N        the first of the six ports that the engine takes; default: 4222
#   SLUICE_CLUSTER_HOST=ADDRESS  another loopback address than 127.0.0.1
#   SLUICE_CLUSTER_NODES=N       how many brokers, from 0 to 9; default: 3
#   SLUICE_CLUSTER_NODE_PORT=N   the port of the first broker; its page is on the next one, and each other broker is 10 further on; default: 7420
#   SLUICE_BIN_DIR=FOLDER        where sluiced is, instead of building it
#   SLUICE_CLUSTER_OWNER=PID     erases the cluster when this process has ended; for tests
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

folder=${SLUICE_CLUSTER_DIR:-$PWD/.build/cluster}
first_port=${SLUICE_CLUSTER_PORT:-4222}
host=${SLUICE_CLUSTER_HOST:-127.0.0.1}
case $host in
127.*) ;;
*) fail "SLUICE_CLUSTER_HOST is '$host', which isn't a loopback address: use one that begins with 127." ;;
esac
engines="n1 n2 n3"
node_count=${SLUICE_CLUSTER_NODES:-3}
case $node_count in
[0-9]) ;;
*) fail "SLUICE_CLUSTER_NODES is '$node_count', which isn't a number from 0 to 9" ;;
esac
nodes=
for number in $(seq "$node_count"); do nodes="$nodes b$number"; done
first_node_port=${SLUICE_CLUSTER_NODE_PORT:-7420}

# Clients' ports come first, then those between the servers.
client_port() { echo $((first_port + ${1#n} - 1)); }
node_port() { echo $((first_node_port + (${1#b} - 1) * 10)); }
admin_port() { echo $((first_node_port + (${1#b} - 1) * 10 + 1)); }
route_port() { echo $((first_port + 3 + ${1#n} - 1)); }

# The process id of a program, if it runs and is the one that was started here: another may have got its number since.
pid_of() { # NAME
  local pid file="$folder/$1.pid"
  [ -s "$file" ] || return 1
  pid=$(cat "$file")
  [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$folder/$1.conf" || return 1
  echo "$pid"
}

engine_settings() { # NAME
  local routes="" other
  for other in $engines; do routes="$routes\"nats://$host:$(route_port "$other")\", "; done
  cat <<SETTINGS
listen: "$host:$(client_port "$1")"
server_name: $1
pid_file: "$folder/$1.pid"
log_file: "$folder/$1.log"
max_payload: 8MB
# A client that doesn't read is dropped after this time.
write_deadline: 10s
jetstream {
  store_dir: "$folder/$1"
  max_memory_store: 64MB
  # What is acknowledged is on the disks of most servers.
  sync_interval: always
}
cluster {
  name: sluice
  listen: "$host:$(route_port "$1")"
  routes: [${routes%, }]
}
# The nodes' account may ask each server whether it syncs.
accounts {
  SYS {
    users: [{ user: system, password: "$(cat "$folder/password")" }]
    exports: [{ service: "\$SYS.REQ.SERVER.PING.JSZ", response: stream, accounts: [SLUICE] }]
  }
  SLUICE {
    jetstream: enabled
    users: [{ user: sluice, password: "$(cat "$folder/password")" }]
    imports: [{ service: { account: SYS, subject: "\$SYS.REQ.SERVER.PING.JSZ" } }]
  }
}
system_account: SYS
SETTINGS
}

node_settings() { # NAME
  local engine addresses=""
  for engine in $engines; do addresses="$addresses\"nats://$host:$(client_port "$engine")\", "; done
  cat <<SETTINGS
listen = ["$host:$(node_port "$1")"]
admin = "$host:$(admin_port "$1")"
[cluster]
engine = [${addresses%, }]
node = "$1"
user = "sluice"
password-file = "password"
SETTINGS
}

start_node() { # NAME
  pid_of "$1" >/dev/null && return
  rm -f "$folder/$1.pid"
  node_settings "$1" >"$folder/$1.conf"
  setsid "$programs/sluiced" --config "$folder/$1.conf" </dev/null >"$folder/$1.ready" 2>>"$folder/$1.log" &
  echo $! >"$folder/$1.pid"
}

# Where sluiced is; built if it isn't there.
find_programs() {
  programs=${SLUICE_BIN_DIR:-}
  if [ -z "$programs" ]; then
    echo "cluster.sh: building sluiced (the first time takes some minutes)" >&2
    swift build -c release --product sluiced </dev/null >&2
    programs=$(swift build -c release --show-bin-path)
  fi
  [ -x "$programs/sluiced" ] || fail "there is no sluiced in $programs"
}

metrics() { # NAME
  local port
  port=$(admin_port "$1")
  {
    exec 3<>"/dev/tcp/$host/$port" && printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3 && cat <&3
  } 2>/dev/null
}

# The node is in the cluster, and each shard has an owner.
await_node() { # NAME
  local tries found
  for tries in $(seq 600); do
    found=$( (metrics "$1") | tr -d '\r' | grep -E '^sluice_cluster_(ready 1|shards_free 0|shards_moving 0|shards [1-9][0-9]*)$' | wc -l) || true
    [ "$found" -lt 4 ] || return 0
    if ! pid_of "$1" >/dev/null; then
      tail -n 5 "$folder/$1.log" >&2
      fail "the node $1 ended; is another program on port $(node_port "$1")? SLUICE_CLUSTER_NODE_PORT=N takes others"
    fi
    sleep 0.1
  done
  fail "the node $1 wasn't ready within a minute; see $folder/$1.log"
}

start_engine() { # NAME
  pid_of "$1" >/dev/null && return
  rm -f "$folder/$1.pid" "$folder/$1.log"
  (umask 077 && engine_settings "$1" >"$folder/$1.conf")
  setsid "$program" -c "$folder/$1.conf" </dev/null >/dev/null 2>"$folder/$1.error" &
}

# Waits until a line is in the server's log.
await() { # NAME TEXT
  local tries
  for tries in $(seq 600); do
    grep -qF "$2" "$folder/$1.log" 2>/dev/null && return
    if [ "$tries" -gt 20 ] && ! pid_of "$1" >/dev/null; then
      cat "$folder/$1.error" >&2
      tail -n 5 "$folder/$1.log" >&2 2>/dev/null || true
      fail "the server $1 ended; is another program on port $(client_port "$1")? SLUICE_CLUSTER_PORT=N takes others"
    fi
    sleep 0.1
  done
  fail "the server $1 wasn't ready within a minute; see $folder/$1.log"
}

# The servers have elected the one that makes streams.
await_leader() {
  local name
  for _ in $(seq 600); do
    for name in $engines; do
      grep -q 'JetStream cluster new metadata leader' "$folder/$name.log" 2>/dev/null && return
    done
    sleep 0.1
  done
  fail "the engine has elected no leader within a minute; see $folder/n1.log"
}

status() {
  local name pid result=0
  for name in $engines; do
    if pid=$(pid_of "$name"); then
      echo "engine $name $host:$(client_port "$name") $pid"
    else
      result=1
    fi
  done
  for name in $nodes; do
    if pid=$(pid_of "$name"); then
      echo "node $name $host:$(node_port "$name") $pid"
    else
      result=1
    fi
  done
  return $result
}

up() {
  mkdir -p "$folder"
  [ -s "$folder/password" ] || (umask 077 && head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/password")
  program=$(scripts/nats-server.sh)
  [ -z "$nodes" ] || find_programs
  local name fresh=no
  for name in $engines; do
    pid_of "$name" >/dev/null || fresh=yes
    start_engine "$name"
  done
  for name in $engines; do await "$name" "Server is ready"; done
  [ "$fresh" = no ] || await_leader
  for name in $nodes; do start_node "$name"; done
  for name in $nodes; do await_node "$name"; done
  if [ -n "${SLUICE_CLUSTER_OWNER:-}" ] && [ ! -e "$folder/owned" ]; then
    touch "$folder/owned"
    setsid bash -c 'while [ -e "$2/owned" ] && kill -0 "$1" 2>/dev/null; do sleep 1; done; exec "$3" erase' \
      _ "$SLUICE_CLUSTER_OWNER" "$folder" "$PWD/scripts/cluster.sh" </dev/null >/dev/null 2>&1 &
  fi
  status
}

stop() { # NAME [signalled]
  local pid
  pid=$(pid_of "$1") || return 0
  # A second signal would stop a broker at once.
  [ -n "${2:-}" ] || kill "$pid" 2>/dev/null || true
  for _ in $(seq 150); do
    pid_of "$1" >/dev/null || return 0
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null || true
}

down() {
  local name pid
  # All nodes at once: the last one has no other to hand its shards to, and closes them.
  for name in b1 b2 b3 b4 b5 b6 b7 b8 b9; do
    if pid=$(pid_of "$name"); then kill "$pid" 2>/dev/null || true; fi
  done
  for name in b1 b2 b3 b4 b5 b6 b7 b8 b9; do stop "$name" signalled; done
  for name in $engines; do stop "$name"; done
}

case ${1:-} in
up) up ;;
status) status ;;
down) down ;;
erase)
  down
  rm -rf "$folder"
  ;;
*) usage ;;
esac
