#!/usr/bin/env bash
# If no registry can be reached, makes the base images of Docker/Dockerfile from Debian's packages and this machine's Swift.
# Needs root, docker and debootstrap. Existing images are kept.
#
#   scripts/local-base-images.sh [base|build]...     default: both
#
#   sluice-base    a small Debian
#   sluice-build   that, with Swift: BUILD_IMAGE. Its size is the toolchain's
#
# SUITE is the release of Debian, default: this machine's; MIRROR is the mirror to download it from.
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

base() {
  if exists sluice-base; then return; fi
  say "making sluice-base:$SUITE"
  debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$work/base" "$MIRROR" >"$work/log" 2>&1 ||
    { tail -20 "$work/log" >&2; fail "debootstrap failed"; }
  rm -rf "$work"/base/var/cache/apt/* "$work"/base/var/lib/apt/lists/*
  tar -C "$work/base" -c . | docker import --change 'CMD ["/bin/bash"]' - "sluice-base:$SUITE" >/dev/null
}

# Prints the packages of the libraries with which the toolchain's programs are linked.
needed_by_toolchain() {
  local program
  for program in swift-frontend swift-build clang lld; do
    ldd "$(readlink -f "$1/bin/$program")"
  done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | { grep -v "^$1/" || true; } | sort -u | while read -r library; do
    library=$(readlink -f "$library")
    # Packages still list /lib, even if it is a link to /usr/lib.
    { dpkg-query -S "$library" "${library#/usr}" 2>/dev/null || true; } | sed -n '1s/:.*//p'
  done | sort -u
}

build() {
  if exists sluice-build; then return; fi
  base
  local toolchain
  toolchain=$(swift -print-target-info | sed -n 's|.*"runtimeResourcePath" *: *"\(.*\)/lib/swift".*|\1|p')
  [ -d "$toolchain" ] || fail "swift -print-target-info doesn't say where Swift is"
  say "making sluice-build:$SUITE with the Swift of $toolchain"
  cat >"$work/Dockerfile" <<END
FROM sluice-base:$SUITE
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
  git binutils $(needed_by_toolchain "$toolchain" | paste -sd' ') && rm -rf /var/lib/apt/lists/*
COPY ${toolchain##*/} /opt/swift/usr
ENV PATH=/opt/swift/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
END
  # The debugger and the tools for editors are large and aren't needed for building.
  tar -c --exclude='*lldb*' --exclude='*sourcekit*' --exclude='*clangd*' -C "$work" Dockerfile -C "$toolchain/.." "${toolchain##*/}" |
    docker build --tag "sluice-build:$SUITE" - >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; fail "docker build failed"; }
}

for kind in "$@"; do
  "$kind"
  echo "sluice-$kind:$SUITE"
done
