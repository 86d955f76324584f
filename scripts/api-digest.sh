#!/usr/bin/env bash
# Compares the public declarations of every library product with packaging/api/MODULE.txt, so that a change of the API is seen in review.
#
#   scripts/api-digest.sh            compares; fails when a declaration came, went or changed
#   scripts/api-digest.sh --record   writes the files anew
#
# Uses the modules that scripts/check.sh has built, or builds them.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

usage() {
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
record=
case ${1:-} in
'') ;;
--record) record=yes ;;
*) usage ;;
esac
[ $# -le 1 ] || usage
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

swift build "${strict[@]}" </dev/null
modules=$(swift build "${strict[@]}" --show-bin-path)/Modules
target=$(swiftc -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
maps=()
for map in Sources/*/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$map"); done

# The modules of the library products, and those that PortableCombine offers under its name.
mapfile -t names < <(swift package "${strict[@]}" dump-package | python3 -c '
import json, sys
package = json.load(sys.stdin)
names = {name for product in package["products"] if "library" in product["type"] for name in product["targets"]}
print("\n".join(sorted(names | {"ReactiveCore", "ReactiveFoundation"})))')

for name in "${names[@]}"; do
  mkdir -p "$work/$name"
  swift-symbolgraph-extract -module-name "$name" -I "$modules" "${maps[@]}" -target "$target" \
    -minimum-access-level public -skip-inherited-docs -skip-synthesized-members -output-dir "$work/$name"
done

python3 - "$work" "${names[@]}" <<'END'
import json, pathlib, re, sys

work = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    lines = set()
    for graph in (work / name).glob("*.symbols.json"):
        content = json.loads(graph.read_text(encoding="utf-8"))
        paths = {symbol["identifier"]["precise"]: ".".join(symbol["pathComponents"]) for symbol in content["symbols"]}
        for relation in content["relationships"]:
            if relation["kind"] == "conformsTo" and relation["source"] in paths and "targetFallback" in relation:
                lines.add(f"{paths[relation['source']]} conforms to {relation['targetFallback']}")
        for symbol in content["symbols"]:
            declaration = "".join(part["spelling"] for part in symbol.get("declarationFragments", []))
            declaration = re.sub(r"\s+", " ", declaration).strip()
            parents = ".".join(symbol["pathComponents"][:-1])
            lines.add(f"{parents}: {declaration}" if parents else declaration)
    (work / f"{name}.txt").write_text("".join(line + "\n" for line in sorted(lines)), encoding="utf-8")
END

code=0
mkdir -p packaging/api
for name in "${names[@]}"; do
  # A module that only offers others under its name declares nothing.
  [ -s "$work/$name.txt" ] || continue
  if [ -n "$record" ]; then
    cp "$work/$name.txt" "packaging/api/$name.txt"
  elif ! diff -u "packaging/api/$name.txt" "$work/$name.txt"; then
    code=1
  fi
done
for file in packaging/api/*.txt; do
  [ -s "$work/$(basename "$file")" ] || { echo "api-digest: $file is of a module that no product has any more; remove it" >&2; code=1; }
done
[ $code -eq 0 ] || echo "api-digest: the public API is another than packaging/api says; if that is meant, run scripts/api-digest.sh --record and say so in CHANGELOG.md" >&2
exit $code
