#!/usr/bin/env bash
# Builds the programs for shipping: optimised, with Swift's runtime in them, without symbols.
#
#   scripts/release.sh DIR      puts sluiced and sluice into DIR
#
# They need the C library of this system, or a newer one, and OpenSSL, LMDB and xxHash. SLUICE_JOBS is the number of compilers at a
# time; default: all cores.
set -euo pipefail

case ${1:-} in
  '' | -*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
mkdir -p "$1"
directory=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

# A folder of its own: a plain build has other options, and would start over.
options=(-c release -Xswiftc -static-stdlib --scratch-path .build/ship)
for program in sluiced sluice; do
  swift build "${options[@]}" ${SLUICE_JOBS:+-j "$SLUICE_JOBS"} --product "$program" </dev/null >&2
done
built=$(swift build "${options[@]}" --show-bin-path)
for program in sluiced sluice; do
  strip -o "$directory/$program" "$built/$program"
  chmod 755 "$directory/$program"
done
