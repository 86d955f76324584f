#!/usr/bin/env bash
# Tests the clients in other languages that lie in Clients/: types, style, tests against a real broker, and the package as users install it.
#
#   scripts/test-clients.sh                     with the broker that scripts/test.sh has built, or builds one
#   scripts/test-clients.sh --programs DIR      with the programs in DIR
#
# Tools come from PyPI into .build/clients. Exits with 3 where Python or its tools can't be had, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=
while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=${2:?--programs takes a directory}; shift 2 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
skip() { echo "test-clients: SKIPPED, $*" >&2; exit 3; }

command -v python3 >/dev/null || skip "python3 isn't installed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "python3 is older than 3.11"
tools=$PWD/.build/clients/tools
if [ ! -x "$tools/bin/ruff" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools" || skip "python3-venv isn't installed; scripts/bootstrap.sh --clients installs it"
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'build>=1' 'mypy>=1.11,<3' 'pytest>=8,<10' 'reactivex>=4,<5' 'ruff>=0.6,<1' 'setuptools>=77' ||
    { rm -rf "$tools"; skip "pip can't install build, mypy, pytest, reactivex and ruff"; }
fi
if [ -z "$programs" ]; then
  swift build --product sluiced --scratch-path .build/strict -Xswiftc -warnings-as-errors </dev/null
  programs=$(swift build --scratch-path .build/strict --show-bin-path)
fi
export SLUICED=$programs/sluiced

cd Clients/python
echo "test-clients: style and types"
"$tools/bin/ruff" check --quiet .
"$tools/bin/ruff" format --check --quiet .
"$tools/bin/mypy" --config-file pyproject.toml src/sluice
echo "test-clients: tests"
PYTHONPATH=src "$tools/bin/python" -m pytest --rootdir . -p no:cacheprovider
echo "test-clients: the package in a clean environment"
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-clients.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r pyproject.toml README.md src "$work/"
"$tools/bin/python" -m build --no-isolation --outdir "$work/dist" "$work" >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
for package in "$work"/dist/*; do
  rm -rf "$work/clean"
  python3 -m venv "$work/clean"
  "$work/clean/bin/pip" install --quiet --disable-pip-version-check "$package"
  (cd "$work" && clean/bin/python -c 'import sluice, sluice.sync; print("test-clients: installed", sluice.__version__)')
  (cd "$work" && clean/bin/python -m sluice --version)
done
