#!/bin/sh
# Installs clients of MQTT and of WebSockets for Python in the checkout, for the tests, and prints the folder. Calling it again does nothing.
#
#   scripts/door-clients.sh
#
# They lie in .build/door-clients. SLUICE_DOOR_WHEELS=DIR takes the wheels from a directory, for machines without a package index. Mosquitto's clients,
# which other tests use, are in Debian's package mosquitto-clients.
set -eu
cd "$(dirname "$0")/.."

folder=$PWD/.build/door-clients

fail() {
  echo "door-clients.sh: $*" >&2
  exit 1
}

[ $# -eq 0 ] || fail "there are no options"
if [ ! -d "$folder" ]; then
  command -v python3 >/dev/null || fail "python3 isn't installed"
  rm -rf "$folder.new"
  set -- --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: --target "$folder.new"
  if [ -n "${SLUICE_DOOR_WHEELS:-}" ]; then set -- "$@" --no-index --find-links "$SLUICE_DOOR_WHEELS"; fi
  python3 -m pip install "$@" 'paho-mqtt>=2.1,<3' 'websockets>=13' >&2 ||
    fail "pip can't install paho-mqtt and websockets; give their wheels with SLUICE_DOOR_WHEELS=DIR"
  mv "$folder.new" "$folder"
fi
echo "$folder"
