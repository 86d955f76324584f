# shellcheck shell=bash disable=SC2154 # variables of cluster.sh
#
# The network of scripts/cluster.sh with SLUICE_CLUSTER_NETWORK: each process is in a network namespace of its own, and another namespace routes between them and
# this machine. So this machine's firewall and settings don't matter there. Docker's firewall, for example, forwards only docker's own packets.
#
# A cut is a routing rule that drops packets silently, like a broken cable. Neither side gets an error. Linux only, and root only.

# Checks the settings of a network: three numbers of an address, such as 10.213.7. On the cable of member number K, the member has address .(4K+2) and the
# router .(4K+1). On this machine's cable, the router has .254 and this machine .253.
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

# Makes the namespace that routes, and this machine's cable, if they don't exist.
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

# Makes a member's namespace and its cable, if they don't exist.
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

# Drops all packets from the first member to the second until `heal`.
lose_packets() { # FROM TO
  ip -n "$(network_name router)" rule add pref "$((20000 + $(member_number "$1") * 100 + $(member_number "$2")))" iif "$(cable "$1")" to "$(network_host "$2")" blackhole
}

# Lets all packets arrive again.
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
  # Removing either end removes a cable, and removing this machine's cable removes its route.
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

# Makes a network and removes it, or prints why that isn't possible.
try_network() {
  check_network
  trap remove_networks EXIT
  { make_network n1 && make_network n2 && lose_packets n1 n2; } 2>&1 || fail "this machine makes no networks"
}
