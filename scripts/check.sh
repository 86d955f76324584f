#!/usr/bin/env bash
# What must hold before a change is merged, apart from the tests: the formatter has nothing to say, and everything builds
# without a warning, the tests included.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "check: format"
swift format lint --strict --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources scripts
for script in scripts/*.sh scripts/*/*.sh scripts/documentation-examples/contexts/*.sh Docker/*.sh packaging/debian/p* .ci/run; do bash -n "$script"; done

echo "check: build"
# A folder of its own: other options than a plain build has would make that one start over.
swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
