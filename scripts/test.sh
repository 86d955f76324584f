#!/usr/bin/env bash
# Installs what is missing, checks the format, builds with warnings as errors, and runs every test.
# Options are passed on to `swift test`: scripts/test.sh --filter SluiceLogTests
#
# Stories under random faults are played from the same seeds in every run, so that a run fails for what was changed. SLUICE_SEED_BASE=fresh plays others:
# look for faults that way in runs of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${SLUICE_SEED_BASE-} in
  "") export SLUICE_SEED_BASE=1 ;;
  fresh) unset SLUICE_SEED_BASE ;;
esac

scripts/bootstrap.sh
scripts/check.sh
echo "test: run"
log=.build/strict/test.log
# Runs tests; the options are those of `swift test`.
run() { swift test --scratch-path .build/strict -Xswiftc -warnings-as-errors "$@" </dev/null 2>&1 | tee "$log"; }
if [ $# -gt 0 ]; then
  run "$@" && exit 0
else
  # Servers and brokers that keep leases and elect leaders by their clocks come afterwards, one suite at a time: nothing else wants the processors then.
  clusters='^(IntegrationTests[.](Cluster[A-Za-z]*Tests|StaleOwnerTests)|SluiceNATSTests[.](AccessTests|ClusterTests|EngineTests)|SluiceClusterTests[.](RealClusterTests|EngineStoreTests))'
  # Each module by itself: all at once, hundreds of threads and gigabytes of simulated worlds take the processors half as much time again.
  each_module() {
    for module in Tests/*Tests; do
      run --skip-build --filter "^${module#Tests/}[.]" --skip "$clusters" || return 1
    done
  }
  swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null \
    && each_module && run --skip-build --no-parallel --filter "$clusters" && exit 0
fi

# Failures are among thousands of lines: repeats them at the end.
{
  echo
  echo "test: FAILED; all of the output is in $log"
  if grep -q '^✘ Test .* recorded an issue' "$log"; then
    # Each issue with the lines that belong to it.
    awk '/^✘ Test .* recorded an issue/ { shown = 1; print; next } /^(◇|✔|✘) / { shown = 0 } shown' "$log" | head -n 200
  else
    echo "No test recorded an issue. These had begun and didn't end:"
    awk '/^◇ Test .* started\.$/ { sub(/^◇ Test /, ""); sub(/ started\.$/, ""); begun[$0]++ }
      /^(✔|✘) Test .* (passed|failed) after/ {
        sub(/^(✔|✘) Test /, ""); sub(/ (passed|failed) after.*$/, ""); sub(/ with [0-9]+ test cases?$/, ""); begun[$0]--
      }
      END { for (name in begun) if (begun[name] > 0 && name !~ /^(case|run) /) print "  " name }' "$log" | sort | head -n 50
    echo "The last lines:"
    grep -v '^◇' "$log" | tail -n 20
  fi
} >&2
exit 1
