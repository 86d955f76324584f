#!/usr/bin/env bash
# The main job in one step: installs missing packages, builds, starts a broker on a free loopback port, publishes the words
# of a dictionary through it, subscribes to them, compares, and stops the broker.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "quickstart: $*"; }

scripts/bootstrap.sh
file=/usr/share/dict/words

say "building (the first time takes about three minutes on two cores)"
for program in sluiced sluice; do
  swift build -c release --product "$program" </dev/null
done
programs=$(swift build -c release --show-bin-path)

directory=$(mktemp -d "${TMPDIR:-/tmp}/sluice-quickstart.XXXXXX")
broker=
finish() {
  [ -n "$broker" ] && kill "$broker" 2>/dev/null && wait "$broker" 2>/dev/null
  rm -rf "$directory"
}
trap finish EXIT

"$programs/sluiced" --listen 127.0.0.1:0 --admin off >"$directory/ready" 2>"$directory/log" </dev/null &
broker=$!
for _ in $(seq 100); do
  grep -q '^sluiced ready$' "$directory/ready" && break
  kill -0 "$broker" 2>/dev/null || { cat "$directory/log" >&2; exit 1; }
  sleep 0.1
done
address=$(sed -n 's/^sluiced listening on //p' "$directory/ready")
[ -n "$address" ] || { echo "quickstart: the broker didn't become ready" >&2; exit 1; }
export SLUICE_SERVER=$address
say "sluiced listens on $address, process $broker"

say "\$ sluice pub demo --complete < $file"
"$programs/sluice" pub demo --complete <"$file"
say "\$ sluice sub demo | cmp - $file"
"$programs/sluice" sub demo </dev/null | cmp - "$file"
say "\$ sluice topic show demo"
"$programs/sluice" topic show demo </dev/null

kill "$broker"
wait "$broker"
broker=
say "every line came back in its place, and the broker has stopped in good order"
say "go on with:"
# The link that swift build makes. The README uses it.
echo "  export PATH=$PWD/.build/release:\$PATH"
echo "  sluiced 2>sluiced.log &"
echo "  sluice --help"
