#!/usr/bin/env bash
# Makes the documentation of every module that has a catalog, and fails on a warning of DocC: a broken link, a page without a place.
#
#   scripts/docs.sh [DIRECTORY]      writes MODULE.doccarchive there; without one it only checks
#
# Uses the modules that scripts/check.sh has built, and builds them if they aren't there.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
output=${1:-$work/archives}
mkdir -p "$output"

swift build --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
modules=$(swift build --scratch-path .build/strict -Xswiftc -warnings-as-errors --show-bin-path)/Modules
target=$(swiftc -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
maps=()
for map in Sources/*/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$map"); done

code=0
for catalog in Sources/*/*.docc; do
  module=$(basename "$catalog" .docc)
  graphs=$work/$module
  mkdir -p "$graphs"
  swift-symbolgraph-extract -module-name "$module" -I "$modules" "${maps[@]}" -target "$target" \
    -minimum-access-level public -skip-inherited-docs -output-dir "$graphs"
  # Extensions of other modules' types belong to its own pages.
  echo "docs: $module"
  docc convert "$catalog" --additional-symbol-graph-dir "$graphs" --fallback-display-name "$module" \
    --fallback-bundle-identifier "sluice.$module" --output-path "$output/$module.doccarchive" \
    --warnings-as-errors >"$work/log" 2>&1 || code=1
  grep -E 'warning:|error:' -A6 "$work/log" || true
done
exit $code
