# shellcheck shell=bash
# The steps of a cluster's scenarios with the containers of Docker/cluster.yaml: see cluster.sh.

# The containers use no fixed port of this machine.
export SLUICE_PORT_1='' SLUICE_PORT_2='' SLUICE_PORT_3='' SLUICE_ADMIN_PORT_1='' SLUICE_ADMIN_PORT_2='' SLUICE_ADMIN_PORT_3=''
# shellcheck source=scripts/integration/common.sh
. "$SCENARIO_FOLDER/common.sh"

ENGINES=(engine-0 engine-1 engine-2)
COMPOSE_FILE_OF_SCENARIO=$TOP/Docker/cluster.yaml
COMPOSE_CHANGES=$TOP/scripts/integration/cluster.yaml
NETWORK=clients
export SLUICE_SECRETS=$WORK/secrets
if ! "$TOP/scripts/cluster-secrets.sh" "$SLUICE_SECRETS" >"$WORK/secrets.log" 2>&1; then
  cat "$WORK/secrets.log"
  exit 1
fi
OPTIONS=(--volume "$SLUICE_SECRETS/client:/client:ro" --env SLUICE_TLS_CA=/client/authority.pem
  --env SLUICE_TLS_CERT=/client/client.pem --env SLUICE_TLS_KEY=/client/client.key)
# A connection that is silent for this long is closed.
OPTIONS+=(--env SLUICE_KEEPALIVE=2s)
SERVICES=(b1 b2 b3 "${ENGINES[@]}")
# The folder of the disks of take_disks.
folder=$WORK/disks HAS_DISKS=''
# shellcheck source=scripts/cluster/disks.sh
. "$TOP/scripts/cluster/disks.sh"

servers() { # NODE...
  local all
  all=$(printf ',tls://%s:7420' "$@")
  echo "${all#,}"
}
SERVER=$(servers b1 b2 b3)

# Whether a node knows three live nodes, and an owner of each shard.
is_member() { # NODE
  local status
  status=$(SERVER=$(servers "$1") client "observer-$1" cluster status </dev/null) && grep -q '3 live' <<<"$status"
}

# Before the servers of the engine start, gives each a disk of its own that can lose power: a folder of this machine instead of docker's volume.
take_disks() {
  local obstacle name
  case ${DOCKER_HOST:-unix:} in
  unix:*) ;;
  *) skip "docker isn't on this machine, whose disks lose their power here" ;;
  esac
  # shellcheck disable=SC2034 # of disks.sh
  disk=512
  obstacle=$(try_disk 2>&1) || skip "${obstacle#*FAILED: }"
  mkdir "$folder"
  HAS_DISKS=yes
  for name in "${ENGINES[@]}"; do
    printf '  %s:\n    volumes: ["%s:/data"]\n' "$name" "$folder/$name"
  done | sed '1i services:' | settings
}
# Cuts the power of these disks, and kills all members.
lose_power_of_members() {
  local name
  lose_power "${ENGINES[@]}"
  kill_members "${ENGINES[@]}" "${NODES[@]}"
  for name in "${ENGINES[@]}"; do unmount_disk "$name"; done
}
unmount_disks() {
  local name
  for name in "${ENGINES[@]}"; do umount "$folder/$name" 2>/dev/null || true; done
}

# Starts the members that don't run, and waits until each node is in the cluster.
start_members() {
  local node
  [ -z "$HAS_DISKS" ] || for node in "${ENGINES[@]}"; do mount_disk "$node"; done
  compose up -d
  for node in b1 b2 b3; do eventually "$node is in the cluster" is_member "$node"; done
}

# shellcheck disable=SC2046 # a word each
kill_members() { docker kill --signal KILL $(for name in "$@"; do container "$name"; done) >/dev/null; } # NAME...
pause_member() { docker pause "$(container "$1")" >/dev/null; } # NAME
wake_member() { docker unpause "$(container "$1")" >/dev/null; } # NAME

# A new container, of the same image unless SLUICE_NEW_IMAGE is another one.
replace_member() { # NAME
  local image=$SLUICE_IMAGE
  export SLUICE_IMAGE=${SLUICE_NEW_IMAGE:-$SLUICE_IMAGE}
  compose up -d --no-deps --force-recreate "$1"
  export SLUICE_IMAGE=$image
}

# Clients are on the same network, so they lose the node too, and connect to another one.
cut_from_nodes() { docker network disconnect "${PROJECT}_clients" "$(container "$1")"; } # NODE
cut_from_engine() { docker network disconnect "${PROJECT}_engine" "$(container "$1")"; } # NODE
heal() { # NODE
  docker network connect --alias "$1" "${PROJECT}_clients" "$(container "$1")" 2>/dev/null || true
  docker network connect "${PROJECT}_engine" "$(container "$1")" 2>/dev/null || true
}

# The server that the others elected last.
engine_leader() {
  local name
  for name in "${ENGINES[@]}"; do
    docker logs "$(container "$name")" 2>&1 | sed -n "s/^\[[0-9]*\] \(.*\) \[INF\] Self is new JetStream cluster metadata leader.*/\1 $name/p"
  done | sort | tail -n 1 | sed 's/.* //'
}

has_copies() { # NAME
  local address
  address=$(docker inspect -f "{{(index .NetworkSettings.Networks \"${PROJECT}_engine\").IPAddress}}" "$(container "$1")")
  { exec 3<>"/dev/tcp/$address/8222" && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 && timeout 5 cat <&3; } 2>/dev/null | grep -q '^HTTP/1.. 200'
}
# Waits until all servers of the engine have the same data.
await_copies() {
  local name
  for name in "${ENGINES[@]}"; do eventually "$name has caught up" has_copies "$name"; done
}
