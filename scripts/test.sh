#!/usr/bin/env bash
# Installs what is missing, checks the format, builds with warnings as errors, and runs every test.
# Options are passed on to `swift test`: scripts/test.sh --filter SluiceLogTests
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh
scripts/check.sh
echo "test: run"
swift test --scratch-path .build/strict -Xswiftc -warnings-as-errors "$@" </dev/null
