#!/usr/bin/env bash
# Makes the documentation: the guides and the reference of every module that has a catalog, as one site with one sidebar. Fails on a warning of DocC, such
# as a broken link or a page that no other page lists. Also fails if the README or an article links to a file or a heading that doesn't exist.
#
#   scripts/docs.sh                     checks
#   scripts/docs.sh --output DIRECTORY  and writes the site there, for any web server
#   scripts/docs.sh --serve [PORT]      and serves it on this machine until Ctrl-C; port 8000 by default
#
# Needs no build: compiles the modules without the bodies of functions. Prints each step with the seconds since the start.
set -euo pipefail
cd "$(dirname "$0")/.."

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
# Checks the port before the pages are made, which takes a minute.
[ -z "$port" ] || python3 -c '
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    server.bind(("127.0.0.1", int(sys.argv[1])))
except (OSError, OverflowError) as error:
    sys.exit(f"docs: cannot serve at port {sys.argv[1]}: {error}")
' "$port"
[ -z "$output" ] || [ ! -e "$output" ] || { echo "docs: $output already exists; name a new folder" >&2; exit 2; }

SECONDS=0
step() { printf 'docs: %3d s: %s\n' "$SECONDS" "$*"; }

code=0
step 'checking links to files and headings'
python3 scripts/docs/links.py README.md CONTRIBUTING.md CHANGELOG.md Sources/*/*.docc/*.md || code=1

# The guides come first in the sidebar.
catalogs=(Sources/Documentation/Sluice.docc)
names=()
for catalog in Sources/*/*.docc; do
  [ "$catalog" != "${catalogs[0]}" ] || continue
  catalogs+=("$catalog")
  names+=("$(basename "$catalog" .docc)")
done
step "compiling the declarations of ${#names[@]} modules and their dependencies"
mkdir "$work/modules"
python3 scripts/docs/modules.py "$work/modules" "${names[@]}"

target=$(swiftc -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
maps=()
for map in Sources/*/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$map"); done

# Makes the archive of one catalog.
convert() {
  local catalog=$1 graphs=()
  local name
  name=$(basename "$catalog" .docc)
  if [ "$name" != Sluice ]; then
    # Extensions of other modules' types are documented on the module's own pages.
    mkdir -p "$work/graphs/$name"
    swift-symbolgraph-extract -module-name "$name" -I "$work/modules" "${maps[@]}" -target "$target" \
      -minimum-access-level public -skip-inherited-docs -output-dir "$work/graphs/$name" || return 1
    graphs=(--additional-symbol-graph-dir "$work/graphs/$name")
  fi
  docc convert "$catalog" --fallback-display-name "$name" --fallback-bundle-identifier "sluice.$name" \
    --output-path "$work/$name.doccarchive" --warnings-as-errors "${graphs[@]}"
}
# One conversion for each processor at a time.
step "making the pages of ${#catalogs[@]} catalogs"
for catalog in "${catalogs[@]}"; do
  while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
  name=$(basename "$catalog" .docc)
  { convert "$catalog" >"$work/$name.log" 2>&1 && touch "$work/$name.made"; } &
done
wait
archives=()
for catalog in "${catalogs[@]}"; do
  name=$(basename "$catalog" .docc)
  if [ -e "$work/$name.made" ]; then
    grep -E 'warning:|error:' -A6 "$work/$name.log" || true
  else
    code=1
    echo "docs: $name failed:" >&2
    cat "$work/$name.log" >&2
  fi
  archives+=("$work/$name.doccarchive")
done
[ "$code" = 0 ] || exit "$code"

step 'putting them together'
site=${output:-$work/site}
docc merge "${archives[@]}" --output-path "$site" --synthesized-landing-page-name Sluice --synthesized-landing-page-kind Documentation
python3 scripts/docs/finish.py "$site"
step "done, $(find "$site/data" -name '*.json' | wc -l) pages"
if [ -n "$output" ]; then echo "docs: $site/index.html"; fi
[ -n "$port" ] || exit 0
# In the background, so that a signal ends the script and thereby the server.
python3 - "$port" "$site" <<'END' &
import functools, http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

port = int(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=sys.argv[2]))
print(f"docs: http://127.0.0.1:{port}/ until Ctrl-C", flush=True)
server.serve_forever()
END
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 143' TERM
wait "$server"
