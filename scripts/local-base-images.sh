#!/usr/bin/env bash
# Makes the images that Docker/Dockerfile begins with from Debian's packages and this machine's Swift, where no registry is reached.
# Needs root, docker and debootstrap. What is there already isn't made again.
#
#   scripts/local-base-images.sh [base|build]...     both, unless told
#
#   sluice-base    a small Debian with the libraries that the programs need
#   sluice-build   that, with Swift: BUILD_IMAGE. Its size is the toolchain's
#
# SUITE is the release of Debian, this machine's unless told; MIRROR is where it comes from.
set -euo pipefail

say() { echo "local-base-images: $*" >&2; }
fail() { say "$*"; exit 1; }
if [ $# -eq 0 ]; then set -- base build; fi
for kind in "$@"; do
  case $kind in
    base | build) ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
for tool in docker debootstrap; do
  command -v "$tool" >/dev/null || fail "$tool is needed: apt-get install docker.io debootstrap"
done
[ "$(id -u)" -eq 0 ] || fail "debootstrap needs root"
if [ -z "${SUITE:-}" ]; then
  SUITE=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  grep -q '^ID=debian$' /etc/os-release ||
    fail "this isn't Debian: say which release of it is meant, such as SUITE=bookworm"
fi
MIRROR=${MIRROR:-http://deb.debian.org/debian}

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-images.XXXXXX")
trap 'rm -rf "$work"' EXIT
exists() { docker image inspect "$1:$SUITE" >/dev/null 2>&1; }

# Makes a Debian in a folder: FOLDER PACKAGE,...
debian() {
  debootstrap --variant=minbase --include="$2" "$SUITE" "$1" "$MIRROR" >"$work/log" 2>&1 ||
    { tail -20 "$work/log" >&2; fail "debootstrap failed"; }
  rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/debootstrap
}

libraries=ca-certificates,liblmdb0,libssl3,libxxhash0
[ "$SUITE" = bookworm ] || libraries=${libraries/libssl3/libssl3t64}

base() {
  if exists sluice-base; then return; fi
  say "making sluice-base:$SUITE"
  debian "$work/base" "$libraries"
  tar -C "$work/base" -c . | docker import --change 'CMD ["/bin/bash"]' - "sluice-base:$SUITE" >/dev/null
}

# The packages that hold the libraries that the toolchain's programs are linked with.
needed_by_toolchain() {
  local program
  for program in swift-frontend swift-build clang lld; do
    ldd "$(readlink -f "$1/bin/$program")"
  done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | { grep -v "^$1/" || true; } | sort -u | while read -r library; do
    dpkg-query -S "$(readlink -f "$library")" 2>/dev/null | sed -n '1s/:.*//p'
  done | sort -u
}

build() {
  if exists sluice-build; then return; fi
  local toolchain packages
  toolchain=$(swift -print-target-info | sed -n 's|.*"runtimeResourcePath" *: *"\(.*\)/lib/swift".*|\1|p')
  [ -d "$toolchain" ] || fail "swift -print-target-info doesn't say where Swift is"
  packages=$(needed_by_toolchain "$toolchain" | paste -sd,)
  say "making sluice-build:$SUITE with the Swift of $toolchain"
  debian "$work/build" "$libraries,git,binutils,$packages"
  # The debugger isn't needed for building, and large.
  mkdir -p "$work/build/opt/swift"
  tar -C "$work/build" -cf "$work/build.tar" .
  tar -rf "$work/build.tar" -C "$toolchain/.." --transform "s|^usr|./opt/swift/usr|" \
    --exclude='*lldb*' --exclude='*sourcekit*' --exclude='usr/share/doc' "${toolchain##*/}"
  docker import --change 'ENV PATH=/opt/swift/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'CMD ["/bin/bash"]' "$work/build.tar" "sluice-build:$SUITE" >/dev/null
}

for kind in "$@"; do
  "$kind"
  echo "sluice-$kind:$SUITE"
done
