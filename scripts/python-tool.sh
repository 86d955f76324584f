#!/usr/bin/env bash
# Prints the path of a program written in Python: from PATH, or from .build/PROGRAM, into which pip installs it the first time.
#
#   scripts/python-tool.sh PROGRAM REQUIREMENT     REQUIREMENT as pip expects it
#
# Exits with 2 when it can't be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v "$1" && exit 0
folder=$PWD/.build/$1
if [ ! -x "$folder/bin/$1" ]; then
  rm -rf "$folder"
  { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --disable-pip-version-check "$2"; } >&2 ||
    { echo "python-tool: $1 can't be installed" >&2; exit 2; }
fi
echo "$folder/bin/$1"
