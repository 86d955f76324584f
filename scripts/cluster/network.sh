# shellcheck shell=bash disable=SC2154 # variables of cluster.sh
# The network of scripts/cluster.sh with SLUICE_CLUSTER_NETWORK: each process is in a network namespace of its own, and one more namespace routes between
# them and this machine, whose firewall and settings don't count there: docker's, for one, forwards nothing that isn't docker's.
# A cut is a routing rule that drops packets without a word, as a broken cable does: neither side is told. Linux only, and root only.

# Settings of a network: three bytes of an address, such as 10.213.7. The member number K has .(4K+2) of it, and the router .(4K+1) on K's cable; the router
# has .254 on this machine's cable, and this machine .253.
check_network() {
  [[ $network =~ ^10\.[0-9]{1,3}\.[0-9]{1,3}$ ]] || fail "SLUICE_CLUSTER_NETWORK is '$network': write three numbers, such as 10.213.7"
  [ "$(id -u)" -eq 0 ] || fail "only root can make networks: leave out SLUICE_CLUSTER_NETWORK"
  command -v ip >/dev/null || fail "'ip' isn't installed, which makes networks: install iproute2"
}

# n1 to n3 are 0 to 2, b1 to b9 are 3 to 11.
member_number() { # NAME
  case $1 in
  n*) echo $((${1#n} - 1)) ;;
  *) echo $((${1#b} + 2)) ;;
  esac
}

network_name() { echo "sluice-${network//./-}-$1"; } # NAME
# At most 15 characters.
cable() { # NAME
  local rest=${network#10.}
  echo "sl${rest/./-}-$1"
}
network_host() { echo "$network.$((4 * $(member_number "$1") + 2))"; } # NAME

# Makes the namespace that routes, and this machine's cable, unless they are there.
make_router() {
  local space cable
  space=$(network_name router) cable=$(cable host)
  [ ! -e "/run/netns/$space" ] || return 0
  ip netns add "$space"
  nsenter --net="/run/netns/$space" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  ip link add "$cable" type veth peer name eth0 netns "$space"
  ip address add "$network.253/30" dev "$cable"
  ip link set "$cable" up
  ip -n "$space" address add "$network.254/30" dev eth0
  ip -n "$space" link set eth0 up
  ip route replace "$network.0/24" via "$network.254"
}

# Makes a member's namespace and its cable, unless they are there.
make_network() { # NAME
  local name=$1 space router cable gateway
  make_router
  space=$(network_name "$name") router=$(network_name router) cable=$(cable "$name")
  [ ! -e "/run/netns/$space" ] || return 0
  gateway=$network.$((4 * $(member_number "$name") + 1))
  ip netns add "$space"
  ip -n "$router" link add "$cable" type veth peer name eth0 netns "$space"
  ip -n "$router" address add "$gateway/30" dev "$cable"
  ip -n "$router" link set "$cable" up
  ip -n "$space" address add "$(network_host "$name")/30" dev eth0
  ip -n "$space" link set lo up
  ip -n "$space" link set eth0 up
  ip -n "$space" route add default via "$gateway"
}

# From now on, packets from the first to the second are lost.
lose_packets() { # FROM TO
  ip -n "$(network_name router)" rule add pref "$((20000 + $(member_number "$1") * 100 + $(member_number "$2")))" iif "$(cable "$1")" to "$(network_host "$2")" blackhole
}

# All packets arrive again.
heal() {
  local router rule from to
  router=$(network_name router)
  [ -e "/run/netns/$router" ] || return 0
  ip -n "$router" rule | sed -n 's/^\([0-9]*\):.*to \([0-9.]*\) iif \(sl[-0-9]*[nb][0-9]\) blackhole.*/\1 \2 \3/p' | while read -r rule to from; do
    ip -n "$router" rule del pref "$rule" iif "$from" to "$to"
  done
}

remove_networks() {
  local name
  # Cables go with either end, this machine's route with its cable.
  for name in $engines b1 b2 b3 b4 b5 b6 b7 b8 b9 router; do
    [ ! -e "/run/netns/$(network_name "$name")" ] || ip netns del "$(network_name "$name")"
  done
}

# Runs a program in a member's namespace, with the same process id. Not by 'ip netns exec': that keeps a copy of all mounts.
in_network() { # NAME PROGRAM...
  local name=$1
  shift
  if [ -z "$network" ]; then exec "$@"; fi
  exec nsenter --net="/run/netns/$(network_name "$name")" "$@"
}

# Makes a network and removes it, or says why that isn't possible.
try_network() {
  check_network
  trap remove_networks EXIT
  { make_network n1 && make_network n2 && lose_packets n1 n2; } 2>&1 || fail "this machine makes no networks"
}
