#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the demonstration need, and checks that Swift is installed. Only the installation needs root or sudo.
# Calling it again has no effect.
#
# --tests also installs software without which some tests are skipped: a browser, MQTT clients, Prometheus' check of metrics, and a YAML parser. With
# --instructions it installs valgrind for scripts/instructions.sh. With --clients it installs the tools that test the clients in Clients/.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "bootstrap: $*" >&2; }
fail() { say "$*"; exit 1; }

# The libraries that the toolchain links with, the durable store's engine and checksums, TLS and cryptography, compression, the configuration's parser, and the word list that
# the tests and the demonstration publish.
packages=(
  binutils git libc6-dev libgcc-12-dev liblmdb-dev libssl-dev libstdc++-12-dev libtomlplusplus-dev libxxhash-dev openssl
  tzdata wamerican zlib1g-dev
)

case ${1:-} in
  "") ;;
  --tests) packages+=(chromium fonts-dejavu-core mosquitto-clients node-mqtt prometheus python3-yaml) ;;
  --instructions) packages+=(valgrind) ;;
  --clients) packages+=(node-typescript python3 python3-venv); command -v node >/dev/null || packages+=(nodejs) ;;
  *) fail "there is no option '$1'; there are --tests, --instructions and --clients" ;;
esac

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
# The compiler's version differs between Debian releases.
compiler() { apt-cache depends gcc 2>/dev/null | sed -n 's/.*Depends: gcc-\([0-9]*\)$/\1/p' || true; }

missing=()
if command -v dpkg-query >/dev/null; then
  gcc=$(compiler)
  if [ -z "$gcc" ] && command -v "${as_root[0]:-true}" >/dev/null; then
    # The package lists have never been fetched.
    "${as_root[@]}" apt-get update -qq </dev/null
    gcc=$(compiler)
  fi
  for package in "${packages[@]}"; do
    package=${package/-12-dev/-${gcc:-12}-dev}
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
elif [ ! -e /usr/share/dict/words ]; then
  fail "this isn't Debian: install a word list at /usr/share/dict/words and what Swift needs by your system's own means"
fi

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "install these as root, then try again: apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq </dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
fi

if ! command -v swift >/dev/null; then
  for directory in /opt/swift/usr/bin "$HOME/.local/share/swiftly/bin" /usr/lib/swift/bin; do
    [ -x "$directory/swift" ] && fail "Swift is at $directory; put it into PATH: export PATH=$directory:\$PATH"
  done
  fail "Swift 6.2 or newer is needed and isn't in PATH: see https://www.swift.org/install/linux/"
fi
version=$(swift --version 2>/dev/null) || fail "swift --version fails: does the toolchain lack libraries? $(swift --version 2>&1 || true)"
version=$(sed -n 's/.*Swift version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' <<<"$version")
read -r major minor <<<"${version:-0 0}"
if [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 2 ]; }; then
  fail "Swift 6.2 or newer is needed, this is ${version/ /.}: see https://www.swift.org/install/linux/"
fi
