#!/usr/bin/env bash
# Installs what is missing, checks the format, builds with warnings as errors, and runs every test.
# Options are passed on to `swift test`: scripts/test.sh --filter SluiceLogTests
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh
scripts/check.sh
echo "test: run"
log=.build/strict/test.log
swift test --scratch-path .build/strict -Xswiftc -warnings-as-errors "$@" </dev/null 2>&1 | tee "$log" && exit 0

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
