#!/usr/bin/env bash
# Kills a broker at random moments, again and again, and looks after each restart whether its durable topics are what was promised.
#
#   scripts/crash-test.sh [CRASHES]     200 unless told; SLUICE_SEED=N repeats a run
#
# The same as the tests do with 20. Prints the seed. Exits 1 when a promise was broken.
set -euo pipefail
cd "$(dirname "$0")/.."

crashes=${1:-200}
case $crashes in
*[!0-9]* | '')
  echo "usage: scripts/crash-test.sh [CRASHES]" >&2
  exit 2
  ;;
esac

swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
SLUICE_CRASHES=$crashes swift test --skip-build --scratch-path .build/strict --filter 'CrashTests' </dev/null
