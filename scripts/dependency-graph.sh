#!/usr/bin/env bash
# Draws which folder of a module uses which, at every depth, from the types that its files name, and fails where two folders beside each other use each other.
#
#   scripts/dependency-graph.sh                  every module below Sources
#   scripts/dependency-graph.sh MODULE...        these
#   scripts/dependency-graph.sh --top MODULE...  only their outermost folders
#   scripts/dependency-graph.sh --dot MODULE     the graph in Graphviz' language
#
# A file uses another folder when its code (not its comments, not its strings) names or extends a type that is declared at the top level there. Between modules
# the compiler prevents circles.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-graph.XXXXXX")
trap 'rm -rf "$work"' EXIT
swiftc -swift-version 6 -warnings-as-errors -o "$work/graph" scripts/dependency-graph/*.swift
"$work/graph" "$@"
