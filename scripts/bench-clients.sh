#!/usr/bin/env bash
# Measures the clients for Python and Node, and others for comparison: nats-py with nats-server, aio-pika with RabbitMQ, MQTT.js with the same broker, and a bare socket of the language.
#
#   scripts/bench-clients.sh                      builds the broker, and measures everything in 3 rounds; takes some minutes
#   scripts/bench-clients.sh --sluiced FILE       with this broker, which should be optimised
#   scripts/bench-clients.sh --no-install         leaves out software that isn't installed, rather than installing it with apt-get
#   scripts/bench-clients.sh OPTION...            see Benchmarks/Clients/run.py: --rounds, --only, --scale, --memory
#
# Results go to standard output. Other projects' clients are installed from PyPI into .build/bench-clients, RabbitMQ and MQTT.js from Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

sluiced=
install=yes
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --sluiced) sluiced=${2:?--sluiced takes a program}; shift 2 ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --*) options+=("$1" "${2:?$1 takes a value}"); shift 2 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

say() { echo "bench-clients: $*" >&2; }
without=()
leave_out() { say "without $1: $2"; without+=("$1"); }
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# RabbitMQ's package would start the service; a temporary policy prevents that.
install_package() {
  is_installed "$1" && return 0
  [ -n "$install" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
  local policy=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  local code=0
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"; } </dev/null >&2 || code=1
  [ -z "$policy" ] || rm "$policy"
  return $code
}

tools=$PWD/.build/bench-clients
if [ ! -x "$tools/bin/python" ]; then
  python3 -m venv "$tools" || { say "python3-venv isn't installed; scripts/bootstrap.sh --clients installs it"; exit 2; }
fi
if ! "$tools/bin/python" -c 'import aio_pika, nats' 2>/dev/null; then
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'nats-py>=2.9,<3' 'aio-pika>=9,<11' >&2 || { leave_out nats "pip can't install nats-py"; leave_out pika "pip can't install aio-pika"; }
fi
nats=$(scripts/nats-server.sh) || leave_out nats "nats-server can't be installed"
install_package rabbitmq-server || leave_out pika "rabbitmq-server isn't installed"
if command -v node >/dev/null; then
  install_package node-mqtt || leave_out mqtt "node-mqtt isn't installed"
else
  leave_out node "it isn't installed"
fi
if [ -z "$sluiced" ]; then
  swift build -c release --product sluiced </dev/null >&2
  sluiced=$(swift build -c release --show-bin-path)/sluiced
fi
exec "$tools/bin/python" Benchmarks/Clients/run.py --sluiced "$(realpath "$sluiced")" --nats "$nats" --without "$(IFS=,; echo "${without[*]-}")" ${options[@]+"${options[@]}"}
