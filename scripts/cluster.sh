#!/usr/bin/env bash
# A cluster on this machine, to try several nodes: three servers of the engine, nats-server, which replicate and sync each write, and three brokers.
#
#   scripts/cluster.sh up             starts the processes that don't run, waits until all are ready, and prints a line for each
#   scripts/cluster.sh up --secure    the same with TLS everywhere: clients, nodes and servers of the engine authenticate
#   scripts/cluster.sh up --doors     each node also serves clients of HTTP, WebSocket and MQTT: see the lines `door`. Topics are durable
#   scripts/cluster.sh status         prints the lines of the running processes; fails unless all run
#   scripts/cluster.sh down           stops all processes; stored data stays
#   scripts/cluster.sh erase          stops all processes and deletes stored data
#
# With --secure there are three authorities, each in a folder with the certificates that it has signed: 'engine' for the servers, 'nodes' for the brokers, and
# 'clients' for clients that authenticate by a certificate. Clients trust 'nodes'. The user 'admin' has all permissions; its password is in
# FOLDER/admin-password. More users and their permissions go into FOLDER/users and FOLDER/permissions. A cluster that was started with --secure stays secure.
#
# To see how a cluster behaves when parts of it fail:
#
#   scripts/cluster.sh can-cut        fails, and prints why, if this machine can't give each process a network of its own
#   scripts/cluster.sh can-lose-power fails, and prints why, if it can't give each server a disk of its own
#   scripts/cluster.sh await-copies   waits until all servers of the engine have the same data
#   scripts/cluster.sh cut FROM TO... drops all packets from one process to another, such as b1 n2 for this direction alone; needs SLUICE_CLUSTER_NETWORK
#   scripts/cluster.sh heal           ends all cuts
#   scripts/cluster.sh lose-power     all servers of the engine lose power and all brokers are killed; needs SLUICE_CLUSTER_DISK. 'up' starts them again
#
# The lines are `engine NAME ADDRESS PID`, `node NAME ADDRESS PID`, and with `--doors` also `door NAME ADDRESS`. The engine's user is 'sluice' and its password is
# in FOLDER/password. All listeners are for this machine only. 'up' builds sluiced and sluice if they aren't built, and ends when each node is in the cluster and
# each shard has an owner.
#
#   SLUICE_CLUSTER_DIR=FOLDER    the folder of settings, data, logs and process ids; default: .build/cluster in the checkout
#   SLUICE_CLUSTER_PORT=N        the first of the nine ports that the engine uses; default: 4222
#   SLUICE_CLUSTER_HOST=ADDRESS  another loopback address than 127.0.0.1
#   SLUICE_CLUSTER_NODES=N       how many brokers, from 0 to 9; default: 3
#   SLUICE_CLUSTER_NODE_PORT=N   the port of the first broker; its page is on the next one, its HTTP, WebSocket and MQTT gateways are on the three after that, and
#                                each other broker's ports are 10 higher; default: 7420
#   SLUICE_BIN_DIR=FOLDER        the folder with sluiced and sluice, instead of building them
#   SLUICE_CLUSTER_NETWORK=10.A.B  gives each process a network of its own, with addresses that begin so, between which 'cut' drops packets. Root only
#   SLUICE_CLUSTER_STORE=MB      how much each server of the engine may store; default: 8192, or four fifths of SLUICE_CLUSTER_DISK
#   SLUICE_CLUSTER_DISK=MIB      gives each server of the engine a disk of its own, to which 'lose-power' applies. Root only
#   SLUICE_CLUSTER_OWNER=PID     erases the cluster when this process has ended; for tests
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

# shellcheck source=scripts/cluster/network.sh
. scripts/cluster/network.sh
# shellcheck source=scripts/cluster/disks.sh
. scripts/cluster/disks.sh

# Whether the cluster in the folder uses TLS and authentication.
is_secure() { [ -e "$folder/secure" ]; }
# Whether the nodes have gateways.
has_doors() { [ -e "$folder/doors" ]; }

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
network=${SLUICE_CLUSTER_NETWORK:-}
[ -z "$network" ] || check_network
disk=${SLUICE_CLUSTER_DISK:-}
[ -z "$disk" ] || check_disks

# The address at which a process listens.
host_of() { # NAME
  if [ -n "$network" ]; then network_host "$1"; else echo "$host"; fi
}
# Ports for clients come first, then those between the servers, then those of their monitoring.
client_port() { echo $((first_port + ${1#n} - 1)); }
node_port() { echo $((first_node_port + (${1#b} - 1) * 10)); }
admin_port() { echo $((first_node_port + (${1#b} - 1) * 10 + 1)); }
route_port() { echo $((first_port + 3 + ${1#n} - 1)); }
monitor_port() { echo $((first_port + 6 + ${1#n} - 1)); }

# The process id of a program, if it runs and was started here. After its end another process may get the same id.
pid_of() { # NAME
  local pid file="$folder/$1.pid"
  [ -s "$file" ] || return 1
  pid=$(cat "$file")
  [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$folder/$1.conf" || return 1
  echo "$pid"
}

# A program that was killed may hold its ports for a moment longer, until all its threads have ended.
await_end() { # NAME
  local pid
  [ -s "$folder/$1.pid" ] || return 0
  pid=$(cat "$folder/$1.pid")
  for _ in $(seq 300); do
    # Another program has the process id now.
    [ -z "$( (tr -d '\0' <"/proc/$pid/cmdline") 2>/dev/null)" ] || return 0
    (cat "/proc/$pid/task/"*/status) 2>/dev/null | grep -q '^State:.[^ZX]' || return 0
    sleep 0.1
  done
}

engine_settings() { # NAME
  local routes="" other password open="" tls="" route_tls=""
  # A password crosses a network only encrypted. In a network that SLUICE_CLUSTER_NETWORK makes, there are no other
  # machines.
  if [ -n "$network" ] && ! is_secure; then
    open="no_auth_user: sluice" password=""
  else
    password=", password: \"$(cat "$folder/password")\""
  fi
  for other in $engines; do routes="$routes\"nats://$(host_of "$other"):$(route_port "$other")\", "; done
  if is_secure; then
    tls="cert_file: \"$folder/engine/$1.pem\", key_file: \"$folder/engine/$1.key\""
    route_tls="tls { $tls, ca_file: \"$folder/engine/authority.pem\", verify: true }"
    tls="tls { $tls }"
  fi
  cat <<SETTINGS
listen: "$(host_of "$1"):$(client_port "$1")"
http: "$(host_of "$1"):$(monitor_port "$1")"
server_name: $1
pid_file: "$folder/$1.pid"
log_file: "$folder/$1.log"
max_payload: 8MB
$tls
# A client that doesn't read is dropped after this time.
write_deadline: 10s
jetstream {
  store_dir: "$folder/$1"
  max_memory_store: 64MB
  # Less than the disk's size: a server whose disk is full disables JetStream, and must be restarted.
  max_file_store: ${SLUICE_CLUSTER_STORE:-$((${disk:-10240} * 4 / 5))}MB
  # Acknowledged records are on the disks of most servers.
  sync_interval: always
}
cluster {
  name: sluice
  listen: "$(host_of "$1"):$(route_port "$1")"
  routes: [${routes%, }]
  # After this many pings a server notices that it is cut off from another. Otherwise that takes minutes.
  ping_interval: "2s"
  ping_max: 2
  $route_tls
}
# The nodes' account may ask each server whether it syncs.
accounts {
  SYS {
    users: [{ user: system, password: "$(cat "$folder/password")" }]
    exports: [{ service: "\$SYS.REQ.SERVER.PING.JSZ", response: stream, accounts: [SLUICE] }]
  }
  SLUICE {
    jetstream: enabled
    users: [{ user: sluice$password }]
    imports: [{ service: { account: SYS, subject: "\$SYS.REQ.SERVER.PING.JSZ" } }]
  }
}
system_account: SYS
$open
SETTINGS
}

# The addresses of a node's gateways.
doors() { # NAME
  local port s="" mqtt=mqtt
  if is_secure; then s=s mqtt=mqtts; fi
  port=$(node_port "$1")
  echo "http$s://$(host_of "$1"):$((port + 2)) ws$s://$(host_of "$1"):$((port + 3)) $mqtt://$(host_of "$1"):$((port + 4))"
}

node_settings() { # NAME
  local engine addresses="" scheme=nats tls="" door more="" topics=""
  if is_secure; then
    scheme=tls
    tls=tls://
  fi
  if has_doors; then
    for door in $(doors "$1"); do more="$more, \"$door\""; done
    topics='[topics]
storage = "durable"'
  fi
  for engine in $engines; do addresses="$addresses\"$scheme://$(host_of "$engine"):$(client_port "$engine")\", "; done
  cat <<SETTINGS
listen = ["$tls$(host_of "$1"):$(node_port "$1")"$more]
admin = "$(host_of "$1"):$(admin_port "$1")"
$topics
[cluster]
engine = [${addresses%, }]
node = "$1"
SETTINGS
  if [ -n "$network" ] && ! is_secure; then
    # Only this machine can reach the network.
    printf '[access]\nallow-unauthenticated = true\n'
  else
    printf 'user = "sluice"\npassword-file = "password"\n'
  fi
  is_secure || return 0
  cat <<SETTINGS
tls-ca = "engine/authority.pem"
peer-ca = "nodes/authority.pem"
peers = ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"]
[tls]
cert = "nodes/$1.pem"
key = "nodes/$1.key"
client-ca = "clients/authority.pem"
client-certs = "optional"
[access]
users = "users"
permissions = "permissions"
SETTINGS
}

# Certificates of three authorities, and a user with all permissions.
make_secure() {
  local names="b1 b2 b3 b4 b5 b6 b7 b8 b9" addresses="" name
  for name in $engines $names; do
    case " $addresses " in *" $(host_of "$name") "*) ;; *) addresses="$addresses $(host_of "$name")" ;; esac
  done
  # shellcheck disable=SC2086 # a word each
  [ -e "$folder/engine/authority.pem" ] || SLUICE_CERTS_NODES=$engines scripts/certs.sh "$folder/engine" $addresses >&2
  # shellcheck disable=SC2086 # a word each
  [ -e "$folder/nodes/authority.pem" ] || SLUICE_CERTS_NODES=$names scripts/certs.sh "$folder/nodes" $addresses >&2
  [ -e "$folder/clients/authority.pem" ] || scripts/certs.sh "$folder/clients" >&2
  [ -n "$nodes" ] || return 0
  [ -s "$folder/admin-password" ] || (umask 077 && random_word >"$folder/admin-password")
  grep -q '^admin:' "$folder/users" 2>/dev/null ||
    "$programs/sluice" user add admin --file "$folder/users" --password-file "$folder/admin-password" 2>/dev/null
  grep -q '^admin ' "$folder/permissions" 2>/dev/null || (umask 077 && echo 'admin all >' >>"$folder/permissions")
}

random_word() { head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

start_node() { # NAME
  pid_of "$1" >/dev/null && return
  await_end "$1"
  rm -f "$folder/$1.pid"
  node_settings "$1" >"$folder/$1.conf"
  [ -z "$network" ] || make_network "$1"
  in_network "$1" setsid "$programs/sluiced" --config "$folder/$1.conf" </dev/null >"$folder/$1.ready" 2>>"$folder/$1.log" &
  echo $! >"$folder/$1.pid"
}

# Finds the folder of sluiced and sluice, and builds them if needed.
find_programs() {
  programs=${SLUICE_BIN_DIR:-}
  if [ -z "$programs" ]; then
    echo "cluster.sh: building sluiced and sluice (the first time takes some minutes)" >&2
    swift build -c release --product sluiced </dev/null >&2
    swift build -c release --product sluice </dev/null >&2
    programs=$(swift build -c release --show-bin-path)
  fi
  [ -x "$programs/sluiced" ] || fail "there is no sluiced in $programs"
  ! is_secure || [ -x "$programs/sluice" ] || fail "there is no sluice in $programs"
}

get() { # NAME PORT PATH
  local proof=""
  case $1 in b*) ! is_secure || proof="Authorization: Basic $(printf 'admin:%s' "$(cat "$folder/admin-password")" | base64 -w 0)" ;; esac
  {
    exec 3<>"/dev/tcp/$(host_of "$1")/$2" && printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n%bConnection: close\r\n\r\n' "$3" "${proof:+$proof\\r\\n}" >&3 && timeout 5 cat <&3
  } 2>/dev/null
}
metrics() { get "$1" "$(admin_port "$1")" /metrics; } # NAME

# The node is in the cluster, and each shard has an owner.
await_node() { # NAME
  local tries found
  for tries in $(seq 600); do
    found=$( (metrics "$1") | tr -d '\r' | grep -cE '^sluice_cluster_(ready 1|shards_free 0|shards_moving 0|shards [1-9][0-9]*)$') || true
    [ "$found" -lt 4 ] || return 0
    # At first the process may still be this script's.
    if [ "$tries" -gt 20 ] && ! pid_of "$1" >/dev/null; then
      tail -n 5 "$folder/$1.log" >&2
      fail "the node $1 ended; is another program on port $(node_port "$1")? SLUICE_CLUSTER_NODE_PORT=N takes others"
    fi
    sleep 0.1
  done
  fail "the node $1 wasn't ready within a minute; see $folder/$1.log"
}

start_engine() { # NAME
  pid_of "$1" >/dev/null && return
  await_end "$1"
  rm -f "$folder/$1.pid" "$folder/$1.log"
  (umask 077 && engine_settings "$1" >"$folder/$1.conf")
  [ -z "$disk" ] || mount_disk "$1"
  [ -z "$network" ] || make_network "$1"
  in_network "$1" setsid "$program" -c "$folder/$1.conf" </dev/null >/dev/null 2>"$folder/$1.error" &
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

# Waits until the servers have elected the server that makes streams.
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

# Waits until a server has all data that its leaders have. Then the next server may stop.
await_copies() {
  local name tries
  for name in $engines; do
    for tries in $(seq 600); do
      if (get "$name" "$(monitor_port "$name")" /healthz) | grep -q '^HTTP/1.1 200'; then continue 2; fi
      sleep 0.1
    done
    fail "the server $name hasn't caught up within a minute ($tries tries); see $folder/$name.log"
  done
}

status() {
  local name pid door result=0 tls=""
  ! is_secure || tls=tls://
  for name in $engines; do
    if pid=$(pid_of "$name"); then
      echo "engine $name $(host_of "$name"):$(client_port "$name") $pid"
    else
      result=1
    fi
  done
  for name in $nodes; do
    if pid=$(pid_of "$name"); then
      echo "node $name $tls$(host_of "$name"):$(node_port "$name") $pid"
      if has_doors; then for door in $(doors "$name"); do echo "door $name $door"; done; fi
    else
      result=1
    fi
  done
  return $result
}

up() { # [--secure] [--doors]
  local option
  mkdir -p "$folder"
  for option in "$@"; do
    [ ! -e "$folder/${option#--}" ] || continue
    [ ! -s "$folder/password" ] || fail "the cluster in $folder was started without $option; erase it first, or choose another SLUICE_CLUSTER_DIR"
    touch "$folder/${option#--}"
  done
  [ -s "$folder/password" ] || (umask 077 && random_word >"$folder/password")
  program=$(scripts/nats-server.sh)
  [ -z "$nodes" ] || find_programs
  ! is_secure || make_secure
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
    # shellcheck disable=SC2016 # the other program expands them
    setsid bash -c 'while [ -e "$2/owned" ] && kill -0 "$1" 2>/dev/null; do sleep 1; done; exec "$3" erase' \
      _ "$SLUICE_CLUSTER_OWNER" "$folder" "$PWD/scripts/cluster.sh" </dev/null >/dev/null 2>&1 &
  fi
  ! is_secure || echo "cluster.sh: clients connect with --tls-ca $folder/nodes/authority.pem --user admin --password-file $folder/admin-password" >&2
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
  # Stops all nodes at once: the last one closes its shards, since it can't hand them to another node.
  for name in b1 b2 b3 b4 b5 b6 b7 b8 b9; do
    if pid=$(pid_of "$name"); then kill "$pid" 2>/dev/null || true; fi
  done
  for name in b1 b2 b3 b4 b5 b6 b7 b8 b9; do stop "$name" signalled; done
  for name in $engines; do stop "$name"; done
}

signal() { # SIGNAL NAME...
  local name pid signal=$1
  shift
  for name in "$@"; do
    if pid=$(pid_of "$name"); then kill "-$signal" "$pid" 2>/dev/null || true; fi
  done
}

power_failure() {
  local name
  [ -n "$disk" ] || fail "SLUICE_CLUSTER_DISK isn't set: the servers share this machine's disk, which keeps its power"
  # shellcheck disable=SC2086 # a word each
  lose_power $engines
  # shellcheck disable=SC2086 # a word each
  signal KILL $engines $nodes
  for name in $engines; do unmount_disk "$name"; done
}

case ${1:-} in
up)
  shift
  for option in "$@"; do
    case $option in --secure | --doors) ;; *) usage ;; esac
  done
  up "$@"
  ;;
status) status ;;
down) down ;;
await-copies) await_copies ;;
cut | heal)
  [ -n "$network" ] || fail "SLUICE_CLUSTER_NETWORK isn't set: all processes are on the same network"
  case $1 in
  heal) heal ;;
  cut)
    shift
    if [ $# -eq 0 ] || [ $(($# % 2)) -eq 1 ]; then usage; fi
    for name in "$@"; do
      [[ $name =~ ^(n[1-3]|b[1-9])$ ]] || fail "'$name' isn't a process of the cluster: there are $engines$nodes"
    done
    while [ $# -gt 0 ]; do
      lose_packets "$1" "$2"
      shift 2
    done
    ;;
  esac
  ;;
can-cut)
  # A network that no test uses, and a different one for each process.
  network=10.$((100 + $$ / 200 % 50)).$((1 + $$ % 200))
  try_network
  ;;
can-lose-power)
  disk=8
  try_disk
  ;;
lose-power) power_failure ;;
erase)
  down
  # shellcheck disable=SC2086 # a word each
  for name in $engines; do [ -z "$disk" ] || unmount_disk "$name"; done
  [ -z "$network" ] || remove_networks
  rm -rf "$folder"
  ;;
*) usage ;;
esac
