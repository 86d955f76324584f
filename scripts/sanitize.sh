#!/usr/bin/env bash
# Builds with a sanitizer, in a folder of its own, and runs tests. Fails when the sanitizer or a test does.
#
#   scripts/sanitize.sh thread|address [OPTION OF swift test]...
#   scripts/sanitize.sh thread --filter SluiceIOTests
#
# Without a filter the tests run of everything that has threads or keeps memory by hand: SUITES below. Left out are
#   IntegrationTests       start the programs; a sanitizer's report would be found in their standard error at best, and everything
#                          they consist of is tested by the others
#   SluiceCommandTests     have next to no threads; they can be asked for
# and of the others, with threads, SeedTests: each of its seeds is one thread from beginning to end, and takes a hundred times as long.
# Tests of how the process ends are skipped: they count exit codes, and the sanitizers have their own.
#
# The thread sanitizer understands the atomics of Swift's Synchronization as they are, and its Mutex by scripts/sanitize/mutex.c.
# SLUICE_JOBS says how many compilers run at a time; all cores unless told.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kind=${1:-}
[ "$kind" = thread ] || [ "$kind" = address ] || usage
shift

SUITES='^(ReactiveCoreTests|ReactiveFoundationTests|PortableCombineTests|SluiceWireTests|SluiceLogTests|SluiceIOTests|SluiceBrokerTests|SluiceClientTests|SimulationTests)\.'
build=.build/sanitize-$kind
options=(--sanitize="$kind" --scratch-path "$build")
swift build --build-tests "${options[@]}" ${SLUICE_JOBS:+-j "$SLUICE_JOBS"} </dev/null

case " $* " in
*" --filter "*) filters=() ;;
*) filters=(--filter "$SUITES") ;;
esac
filters+=(--skip signalsOfTheProcessAreDeliveredToALoop --skip acceptingGoesOnWhenThereAreDescriptorsAgain)

environment=()
if [ "$kind" = thread ]; then
  filters+=(--skip SeedTests)
  clang -O1 -shared -fPIC -Wall -Werror scripts/sanitize/mutex.c -o "$build/mutex.so"
  environment=(
    LD_PRELOAD="$PWD/$build/mutex.so"
    TSAN_OPTIONS="exitcode=66 second_deadlock_stack=1 suppressions=$PWD/scripts/sanitize/thread.supp ${TSAN_OPTIONS:-}"
  )
else
  # Swift's own metadata and what lives until the end look like leaks.
  environment=(ASAN_OPTIONS="detect_leaks=0 detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}")
fi
# Both sanitizers want to know where things lie in memory.
fixed=()
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed=(setarch "$(uname -m)" -R); fi

env "${environment[@]}" ${fixed[@]+"${fixed[@]}"} \
  swift test --skip-build "${options[@]}" "${filters[@]}" "$@" </dev/null
