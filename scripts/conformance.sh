#!/usr/bin/env bash
# Runs a client through the scenarios of Clients/conformance, against a real broker and a scripted one.
#
#   scripts/conformance.sh python                   the client in Clients/python
#   scripts/conformance.sh javascript               the client in Clients/javascript
#   scripts/conformance.sh swift                    the client in Sources/SluiceClient; its driver is built with the tests
#   scripts/conformance.sh "node my-driver.mjs"     any other, by the command line of its driver
#
#   --programs DIR   with the broker in DIR, rather than .build/strict/debug
#   --only TEXT      only scenarios whose names contain TEXT
#   --seed N         with the random choices of an earlier run
#   --workers N      N scenarios at a time; by default 4
#   --verbose        prints each scenario
#   --list           prints the scenarios' names and what they check
#
# Exits with 3 if the client's language isn't installed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
client=
programs=.build/strict/debug
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=${2:?--programs takes a directory}; shift 2 ;;
    --only | --seed | --workers) options+=("$1" "${2:?$1 takes a value}"); shift 2 ;;
    --verbose) options+=("$1"); shift ;;
    --list) exec python3 Clients/conformance --list ;;
    -*) usage ;;
    *) [ -z "$client" ] || usage; client=$1; shift ;;
  esac
done
[ -n "$client" ] || usage
skip() { echo "conformance: SKIPPED, $*" >&2; exit 3; }
command -v python3 >/dev/null || skip "python3 isn't installed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "python3 is older than 3.11"
[ -x "$programs/sluiced" ] || { echo "conformance: $programs/sluiced isn't there; build it, or name its directory by --programs" >&2; exit 2; }

drivers=$PWD/Clients/conformance/drivers
case $client in
  python) name=$client; driver=(python3 "$drivers/python.py") ;;
  javascript)
    command -v node >/dev/null || skip "node isn't installed; scripts/bootstrap.sh --clients installs it"
    name=$client; driver=(node "$drivers/javascript.mjs") ;;
  swift)
    [ -x "$programs/ConformanceDriver" ] || { echo "conformance: $programs/ConformanceDriver isn't there; build it, or name its directory by --programs" >&2; exit 2; }
    name=$client; driver=("$programs/ConformanceDriver") ;;
  *) name=client; read -ra driver <<<"$client" ;;
esac
exec python3 Clients/conformance --name "$name" --program "$programs/sluiced" ${options[@]+"${options[@]}"} -- "${driver[@]}"
