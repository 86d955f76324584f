#!/usr/bin/env bash
# Builds with a sanitizer, in a separate folder, and runs tests. Fails when the sanitizer or a test does.
#
#   scripts/sanitize.sh thread|address [OPTION OF swift test]...
#   scripts/sanitize.sh thread --filter SluiceIOTests
#   SLUICE_TESTS=ReactiveCoreTests,SluiceBrokerTests scripts/sanitize.sh thread    builds no more than these need
#
# Without a filter all tests run, and IntegrationTests use programs that are built with the sanitizer. A report of any process becomes
# a file in the build's folder; all reports are printed at the end. Some tests don't run:
#   SKIPPED below lists tests of how a process ends after a forbidden operation, which a sanitizer changes. A sanitizer also changes
#   the use of memory, so tests that measure it check SLUICE_SANITIZER and leave that part out.
#   The thread sanitizer skips scenarios from seeds: each has only one thread, and takes a hundred times as long. The address
#   sanitizer runs the first hundred of each, or as many as SLUICE_SEEDS.
#
# The thread sanitizer understands the atomics of Swift's Synchronization as they are, and its Mutex through scripts/sanitize/mutex.c.
# SLUICE_JOBS is the number of compilers at a time; default: all cores.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kind=${1:-}
[ "$kind" = thread ] || [ "$kind" = address ] || usage
shift

SKIPPED=(
  signalsOfTheProcessAreDeliveredToALoop acceptingGoesOnWhenThereAreDescriptorsAgain theSmallStackIsSmall
)
build=.build/sanitize-$kind
# A build for a few tests can't be extended to all of them.
[ -z "${SLUICE_TESTS:-}" ] || build+=-part
options=(--sanitize="$kind" --scratch-path "$build")
swift build --build-tests "${options[@]}" ${SLUICE_JOBS:+-j "$SLUICE_JOBS"} </dev/null

filters=()
for test in "${SKIPPED[@]}"; do filters+=(--skip "$test"); done
reports=$PWD/$build/reports
rm -rf "$reports"
mkdir -p "$reports"
environment=(SLUICE_SANITIZER="$kind")
if [ "$kind" = thread ]; then
  # One test after another: in parallel they contend for the lock of the generic type cache.
  filters+=(--skip SeedTests --no-parallel)
  clang -O1 -shared -fPIC -Wall -Werror scripts/sanitize/mutex.c -o "$build/mutex.so"
  environment+=(
    LD_PRELOAD="$PWD/$build/mutex.so"
    TSAN_OPTIONS="log_path=$reports/report exitcode=66 second_deadlock_stack=1 suppressions=$PWD/scripts/sanitize/thread.supp ${TSAN_OPTIONS:-}"
  )
else
  environment+=(SLUICE_SEEDS="${SLUICE_SEEDS:-100}")
  # To the sanitizer, Swift's metadata and objects that exist until the end look like leaks.
  environment+=(
    ASAN_OPTIONS="log_path=$reports/report detect_leaks=0 detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"
  )
fi
# Both sanitizers need a fixed memory layout.
fixed=()
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed=(setarch "$(uname -m)" -R); fi

code=0
env "${environment[@]}" ${fixed[@]+"${fixed[@]}"} \
  swift test --skip-build "${options[@]}" "${filters[@]}" "$@" </dev/null || code=$?
for report in "$reports"/*; do
  [ -e "$report" ] || break
  cat "$report" >&2
  code=1
done
exit $code
