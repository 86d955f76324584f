#!/usr/bin/env bash
# Kills a broker at random moments, again and again. After each restart it checks that the broker's durable topics contain all promised records.
#
#   scripts/crash-test.sh [CRASHES]     default: 200; SLUICE_SEED=N repeats a run
#
# The tests do the same with 20 crashes. Prints the seed. Exits 1 when a promise was broken.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

crashes=${1:-200}
case $crashes in
*[!0-9]* | '')
  echo "usage: scripts/crash-test.sh [CRASHES]" >&2
  exit 2
  ;;
esac

swift build --build-tests "${strict[@]}" </dev/null
SLUICE_CRASHES=$crashes swift test --skip-build "${strict[@]}" --filter 'CrashTests' </dev/null
