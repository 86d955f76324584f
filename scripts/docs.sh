#!/usr/bin/env bash
# Makes the documentation: the guides and the reference of every module that has a catalog, as one site with one sidebar. Fails on a warning of DocC, such as a broken link. Also fails if
# the README or an article links to a file or a heading that doesn't exist.
#
#   scripts/docs.sh                     checks
#   scripts/docs.sh --output DIRECTORY  and writes the site there, for any web server
#   scripts/docs.sh --serve [PORT]      and serves it on this machine until Ctrl-C; port 8000 by default
#
# Uses the modules that scripts/check.sh has built, and builds them if they don't exist.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
output='' port=''
case ${1:-} in
'') ;;
--output) [ $# -eq 2 ] && [ -n "$2" ] || usage; output=$2 ;;
--serve) [ $# -le 2 ] || usage; port=${2:-8000} ;;
*) usage ;;
esac
case $port in *[!0-9]*) usage ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Checks the port before the pages are made, which takes minutes.
[ -z "$port" ] || python3 -c '
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    server.bind(("127.0.0.1", int(sys.argv[1])))
except (OSError, OverflowError) as error:
    sys.exit(f"docs: cannot serve at port {sys.argv[1]}: {error}")
' "$port"
[ -z "$output" ] || [ ! -e "$output" ] || { echo "docs: $output is there already; name a folder that isn't" >&2; exit 2; }

swift build "${strict[@]}" </dev/null
modules=$(swift build "${strict[@]}" --show-bin-path)/Modules
target=$(swiftc -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
maps=()
for map in Sources/*/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$map"); done

code=0
convert() {
  local catalog=$1 name=$2
  shift 2
  echo "docs: $name"
  docc convert "$catalog" --fallback-display-name "$name" --fallback-bundle-identifier "sluice.$name" \
    --output-path "$work/$name.doccarchive" --warnings-as-errors "$@" >"$work/log" 2>&1 || code=1
  grep -E 'warning:|error:' -A6 "$work/log" || true
}
# The guides come first in the sidebar.
convert Sources/Documentation/Sluice.docc Sluice
archives=("$work/Sluice.doccarchive")
for catalog in Sources/*/*.docc; do
  name=$(basename "$catalog" .docc)
  [ "$name" != Sluice ] || continue
  # Extensions of other modules' types are documented on the module's own pages.
  mkdir -p "$work/graphs/$name"
  swift-symbolgraph-extract -module-name "$name" -I "$modules" "${maps[@]}" -target "$target" \
    -minimum-access-level public -skip-inherited-docs -output-dir "$work/graphs/$name"
  convert "$catalog" "$name" --additional-symbol-graph-dir "$work/graphs/$name"
  archives+=("$work/$name.doccarchive")
done

# Checks links to files and headings of the repository, which DocC doesn't check.
while IFS=$'\t' read -r page link; do
  file=${link%%#*} heading=${link#*#}
  [ "$heading" != "$link" ] || heading=''
  if [ -z "$file" ]; then file=$page; else file=$(dirname "$page")/$file; fi
  # DocC finds an image of the catalog by its name.
  if [ ! -e "$file" ] && [ ! -e "$(dirname "$page")/Resources/$link" ]; then
    echo "docs: $page links to $link, which isn't there" >&2
    code=1
  elif [ -n "$heading" ] && ! sed -nE 's/^#+ +//p' "$file" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF "$heading"; then
    echo "docs: $page links to the heading $heading of $file, which isn't there" >&2
    code=1
  fi
done < <(for page in README.md CONTRIBUTING.md CHANGELOG.md Sources/*/*.docc/*.md; do
  { grep -oE '\]\([^):]+\)' "$page" || true; } | sed "s|^](|$page\t|; s|)$||"
  { grep -E '^\[[^]]+\]: [^:]+$' "$page" || true; } | sed -E "s|^\[[^]]+\]: |$page\t|"
done)
[ "$code" = 0 ] || exit "$code"

site=${output:-$work/site}
docc merge "${archives[@]}" --output-path "$site" --synthesized-landing-page-name Sluice --synthesized-landing-page-kind Documentation
# DocC writes the members of its objects in any order. Sorting them gives the same bytes for the same source in a release's
# archive.
[ -z "$output" ] || find "$site" -name '*.json' -print0 | python3 -c '
import json, sys
for path in sys.stdin.read().split("\0")[:-1]:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
'
if [ -n "$output" ]; then echo "docs: $site/index.html, begin with documentation/sluice"; fi
[ -n "$port" ] || exit 0
# In the background, so that a signal ends the script and thereby the server.
python3 - "$port" "$site" <<'END' &
import functools, http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

port = int(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=sys.argv[2]))
print(f"docs: http://127.0.0.1:{port}/documentation/sluice until Ctrl-C", flush=True)
server.serve_forever()
END
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 143' TERM
wait "$server"
