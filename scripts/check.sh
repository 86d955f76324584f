#!/usr/bin/env bash
# Checks a change before it is merged, apart from the tests: the formatter finds no problem, texts are plain English,
# settings in two files agree, and all targets, tests included, build without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

echo "check: format"
swift format lint --strict --recursive Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources Clients/conformance/drivers/swift scripts
for script in scripts/*.sh scripts/*/*.sh scripts/documentation-examples/contexts/*.sh Docker/*.sh packaging/debian/p* .ci/run; do bash -n "$script"; done

echo "check: names"
# A file that a mistake in a shell has created, such as "*.swift", must not reach the repository. The "@" is systemd's, for instances, and "~dark" DocC's,
# for pictures on dark pages.
if git ls-files | grep -vE '^([A-Za-z0-9._+@-]+/)*[A-Za-z0-9._+@-]+(~dark\.svg)?$'; then
  echo "check: the tracked files above have characters in their names other than A-Z a-z 0-9 . _ + @ -; rename or remove them" >&2
  exit 1
fi
# From its second build on, `canImport` also finds a module of that name in the package that uses ours, which is a circular dependency. The toolchain's
# own modules are safe.
if git grep -nE 'canImport\(' -- Sources | grep -vE 'canImport\((Glibc|Musl|FoundationEssentials|FoundationNetworking)\)'; then
  echo "check: the lines above ask for a module that a program may have; test the platform with os() instead" >&2
  exit 1
fi

echo "check: prose and state"
if command -v python3 >/dev/null; then
  scripts/prose.sh --check
  scripts/shared-state.py --check
else
  echo "check: SKIPPED, the counts of sentences that are hard to read and of state that other types change: python3 isn't installed" >&2
fi

echo "check: diagrams"
if command -v python3 >/dev/null; then
  scripts/diagrams.py --check
else
  echo "check: SKIPPED, whether the diagrams are as their script draws them: python3 isn't installed" >&2
fi

echo "check: copies"
diff -u Docker/engine.conf <(sed -n '/^  engine.conf: |$/,/^---$/p' packaging/kubernetes/cluster.yaml | sed '1d; $d; s/^    //')

# The modules stand in the order of their dependencies, in both files.
modules() { grep -v '^C[A-Z]' | while read -r name; do [ ! -d "Sources/$name" ] || echo "$name"; done; }
if ! diff <(sed -n '/^Sources\/$/,/^Tests\//s/^  \([A-Z][A-Za-z]*\) .*/\1/p' CONTRIBUTING.md | grep -vE '^(Documentation|Examples)$' | modules) \
  <(sed '1,/^  targets: \[/d' Package.swift | sed -n 's/.*name: "\([A-Z][A-Za-z]*\)".*/\1/p' | modules); then
  echo "check: CONTRIBUTING.md (<) doesn't list the modules as Package.swift (>) does, in the order of their dependencies" >&2
  exit 1
fi

echo "check: build"
# A folder of its own: a plain build has other options, and would start over.
swift build --build-tests "${strict[@]}" </dev/null
