#!/usr/bin/env bash
# Checks what a change must satisfy before it is merged, apart from the tests: the formatter finds nothing, settings
# that stand in two files agree, and everything, tests included, builds without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "check: format"
swift format lint --strict --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources scripts
for script in scripts/*.sh scripts/*/*.sh scripts/documentation-examples/contexts/*.sh Docker/*.sh packaging/debian/p* .ci/run; do bash -n "$script"; done

echo "check: copies"
diff -u Docker/engine.conf <(sed -n '/^  engine.conf: |$/,/^---$/p' packaging/kubernetes/cluster.yaml | sed '1d; $d; s/^    //')

echo "check: build"
# A folder of its own: a plain build has other options, and would start over.
swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
