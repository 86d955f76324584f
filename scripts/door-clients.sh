#!/bin/sh
# Installs Python clients for MQTT, WebSocket and HTTP in the checkout, for the tests, and prints the folder. Calling it again has no effect.
#
#   scripts/door-clients.sh
#
# They are installed in `.build/door-clients`. SLUICE_DOOR_WHEELS=DIR takes the wheels from a directory, for machines without a package index. Other tests use
# the clients in Debian's packages mosquitto-clients and node-mqtt (MQTT.js), which scripts/bootstrap.sh --tests installs.
set -eu
cd "$(dirname "$0")/.."

folder=$PWD/.build/door-clients

fail() {
  echo "door-clients.sh: $*" >&2
  exit 1
}

[ $# -eq 0 ] || fail "there are no options"
if [ ! -d "$folder/httpx" ]; then
  command -v python3 >/dev/null || fail "python3 isn't installed"
  rm -rf "$folder.new"
  set -- --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: --target "$folder.new"
  if [ -n "${SLUICE_DOOR_WHEELS:-}" ]; then set -- "$@" --no-index --find-links "$SLUICE_DOOR_WHEELS"; fi
  # Dependencies are listed too, and nothing else is installed.
  python3 -m pip install "$@" 'paho-mqtt>=2.1,<3' 'websockets>=13' 'aiomqtt>=2.3,<3' 'gmqtt>=0.7,<0.8' 'httpx>=0.28,<0.29' 'httpcore>=1,<2' 'h11>=0.16,<0.17' \
    'anyio>=4,<5' 'idna>=3' certifi 'sniffio>=1' 'typing_extensions>=4.8' >&2 ||
    fail "pip can't install paho-mqtt, websockets, aiomqtt, gmqtt and httpx; give their wheels with SLUICE_DOOR_WHEELS=DIR"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
fi
echo "$folder"
