#!/usr/bin/env bash
# Installs missing packages, checks the format, builds with warnings as errors, and runs every test.
# Options are passed on to `swift test`: scripts/test.sh --filter SluiceLogTests
#
# Scenarios with random faults use the same seeds in every run, so that a run only fails because of a change. SLUICE_SEED_BASE=fresh uses other seeds:
# to look for faults, use it in separate runs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

case ${SLUICE_SEED_BASE-} in
  "") export SLUICE_SEED_BASE=1 ;;
  fresh) unset SLUICE_SEED_BASE ;;
esac

scripts/bootstrap.sh
scripts/check.sh
echo "test: run"
log=.build/strict/test.log
# Runs tests; the options are those of `swift test`.
run() { swift test "${strict[@]}" "$@" </dev/null 2>&1 | tee "$log"; }

# Tests with servers and brokers that keep leases and elect leaders by their clocks. They run one suite at a time, and nothing else
# may use the processors.
clusters='^(IntegrationTests[.](Cluster[A-Za-z]*Tests|StaleOwnerTests)|SluiceNATSTests[.](AccessTests|ClusterTests|EngineTests)|SluiceClusterTests[.](RealClusterTests|EngineStoreTests))'
# Worlds whose clocks are simulated. They use the processor time that the clusters leave, since lack of it only makes them
# slower.
worlds=(SimulationTests ClusterSimulationTests)
worlds_log=.build/strict/test-worlds.log

# Runs each module by itself. All at once, hundreds of threads and gigabytes of simulated worlds take half as much processor time again.
each_module() {
  local module
  for module in Tests/*Tests; do
    module=${module#Tests/}
    [[ " ${worlds[*]} " == *" $module "* ]] || run --skip-build --filter "^${module}[.]" --skip "$clusters" || return 1
  done
}

# Runs the test program directly, since two `swift test` in one folder wait for each other.
each_world() {
  local module program
  program=$(swift build "${strict[@]}" --show-bin-path)/sluicePackageTests.xctest
  for module in "${worlds[@]}"; do
    nice -n 19 "$program" --testing-library swift-testing --filter "^${module}[.]" </dev/null >>"$worlds_log" 2>&1 || return 1
  done
}

clusters_beside_worlds() {
  local beside failed=0
  : >"$worlds_log"
  # A separate process group, so that no process of it outlives this script.
  set -m
  each_world &
  beside=$!
  set +m
  trap 'kill -- -'"$beside"' 2>/dev/null || true' EXIT
  run --skip-build --no-parallel --filter "$clusters" || failed=1
  if [ $failed -eq 0 ] && ! wait "$beside"; then
    log=$worlds_log failed=1
  fi
  grep -v '^◇' "$worlds_log" || true
  return $failed
}

if [ $# -gt 0 ]; then
  run "$@" && exit 0
else
  swift build --build-tests "${strict[@]}" </dev/null \
    && each_module && clusters_beside_worlds && exit 0
fi

# Failures are among thousands of lines, so they are repeated at the end.
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
