#!/usr/bin/env bash
# Checks a change before it is merged, apart from the tests: the formatter finds no problem, texts are plain English,
# settings in two files agree, and all targets, tests included, build without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "check: format"
swift format lint --strict --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources Clients/conformance/drivers/swift scripts
for script in scripts/*.sh scripts/*/*.sh scripts/documentation-examples/contexts/*.sh Docker/*.sh packaging/debian/p* .ci/run; do bash -n "$script"; done

echo "check: names"
# A file that was created by a typing mistake in a shell, such as "*.swift", must not get into the repository. The "@" is for systemd
# instances.
if git ls-files | grep -vE '^([A-Za-z0-9._+@-]+/)*[A-Za-z0-9._+@-]+$'; then
  echo "check: the tracked files above have characters in their names other than A-Z a-z 0-9 . _ + @ -; rename or remove them" >&2
  exit 1
fi
# From its second build on, `canImport` also finds a module of that name in the package that uses ours, which is a circular dependency. The toolchain's
# own modules are safe.
if git grep -nE 'canImport\(' -- Sources | grep -vE 'canImport\((Glibc|Musl|FoundationEssentials|FoundationNetworking)\)'; then
  echo "check: the lines above ask for a module that a program may have; test the platform with os() instead" >&2
  exit 1
fi

echo "check: prose"
if command -v python3 >/dev/null; then
  scripts/prose.sh --check
else
  echo "check: SKIPPED, the count of sentences that are hard to read: python3 isn't installed" >&2
fi

echo "check: copies"
diff -u Docker/engine.conf <(sed -n '/^  engine.conf: |$/,/^---$/p' packaging/kubernetes/cluster.yaml | sed '1d; $d; s/^    //')

echo "check: build"
# A separate folder, since a plain build has other options and would rebuild everything.
swift build --build-tests --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
