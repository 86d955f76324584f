#!/usr/bin/env bash
# Tests the clients in other languages in Clients/: types, style, tests against a real broker, and the package as users install it.
#
#   scripts/test-clients.sh                     with the broker that scripts/test.sh has built, or builds one
#   scripts/test-clients.sh --programs DIR      with the programs in DIR
#
# Python's tools are installed from PyPI into .build/clients. If a language or its tools can't be installed, its client is skipped with a
# message; exits with 3 if both are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh

programs=
while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=${2:?--programs takes a directory}; shift 2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
skip() { echo "test-clients: SKIPPED, $*" >&2; }
tools=$PWD/.build/clients/tools
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-clients.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Whether Python and the tools to test its client are installed.
has_python() {
  command -v python3 >/dev/null || { skip "Python: python3 isn't installed"; return 1; }
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { skip "Python: python3 is older than 3.11"; return 1; }
  [ ! -x "$tools/bin/ruff" ] || return 0
  rm -rf "$tools"
  python3 -m venv "$tools" || { skip "Python: python3-venv isn't installed; scripts/bootstrap.sh --clients installs it"; return 1; }
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'build>=1' 'mypy>=1.11,<3' 'pytest>=8,<10' 'reactivex>=4,<5' 'ruff>=0.6,<1' 'setuptools>=77' ||
    { rm -rf "$tools"; skip "Python: pip can't install build, mypy, pytest, reactivex and ruff"; return 1; }
}

has_node() {
  command -v node >/dev/null || { skip "JavaScript: node isn't installed; scripts/bootstrap.sh --clients installs it"; return 1; }
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || { skip "JavaScript: node is older than 20"; return 1; }
}
if [ -z "$programs" ]; then
  swift build --product sluiced "${strict[@]}" </dev/null
  programs=$(swift build "${strict[@]}" --show-bin-path)
fi
SLUICED=$(realpath "$programs")/sluiced
export SLUICED

test_python() {
  cd Clients/python
  echo "test-clients: Python, style and types"
  "$tools/bin/ruff" check --quiet .
  "$tools/bin/ruff" format --check --quiet .
  "$tools/bin/mypy" --config-file pyproject.toml src/sluice
  local path
  for path in ../conformance/__main__.py ../conformance/drivers/python.py; do
    MYPYPATH=src:../conformance "$tools/bin/mypy" --strict "$path"
  done
  "$tools/bin/mypy" --strict ../conformance/kit
  "$tools/bin/ruff" check --quiet --config pyproject.toml ../conformance
  "$tools/bin/ruff" format --check --quiet --config pyproject.toml ../conformance
  "$tools/bin/ruff" check --quiet --config pyproject.toml ../../Benchmarks/Clients
  "$tools/bin/ruff" format --check --quiet --config pyproject.toml ../../Benchmarks/Clients
  echo "test-clients: Python, tests"
  PYTHONPATH=src "$tools/bin/python" -m pytest --rootdir . -p no:cacheprovider
  "$tools/bin/python" -m pytest --rootdir . -p no:cacheprovider ../conformance/tests
  echo "test-clients: Python, the package in a clean environment"
  mkdir "$work/python"
  cp -r pyproject.toml README.md src "$work/python/"
  "$tools/bin/python" -m build --no-isolation --outdir "$work/dist" "$work/python" >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
  local package
  for package in "$work"/dist/*; do
    rm -rf "$work/clean"
    python3 -m venv "$work/clean"
    "$work/clean/bin/pip" install --quiet --disable-pip-version-check "$package"
    (cd "$work" && clean/bin/python -c 'import sluice, sluice.sync; print("test-clients: installed", sluice.__version__)')
    (cd "$work" && clean/bin/python -m sluice --version)
  done
}

# The newest Python that is installed besides python3: in PATH, or by pyenv. Empty if python3 is the newest.
newest_python() {
  local program newest=
  for program in $(compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -uV) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    # pyenv also installs a shim for versions that aren't selected.
    "$program" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue
    [ -z "$newest" ] || [ "$("$program" -c 'import sys; print(sys.version_info[1])')" -gt "$("$newest" -c 'import sys; print(sys.version_info[1])')" ] || continue
    newest=$program
  done
  [ -z "$newest" ] || "$newest" -c 'import sys; sys.exit(sys.version_info[:2] == '"$(python3 -c 'import sys; print(sys.version_info[:2])')"')' || newest=
  echo "$newest"
}

test_newest_python() {
  local python
  python=$(newest_python)
  [ -n "$python" ] || { skip "a newer Python than $(python3 --version): there is none"; return 0; }
  echo "test-clients: Python, tests with $("$python" --version)"
  if ! "$python" -m venv "$work/newest" || ! "$work/newest/bin/pip" install --quiet --disable-pip-version-check 'pytest>=8,<10' 'reactivex>=4,<5'; then
    skip "$("$python" --version): pip can't install pytest and reactivex"
    return 0
  fi
  (cd Clients/python && PYTHONPATH=src "$work/newest/bin/python" -m pytest --rootdir . -p no:cacheprovider)
}

test_javascript() {
  cd Clients/javascript
  if command -v tsc >/dev/null; then
    echo "test-clients: JavaScript, types"
    tsc -p .
  else
    skip "JavaScript's types: tsc isn't installed; scripts/bootstrap.sh --clients installs it"
  fi
  echo "test-clients: JavaScript, tests"
  timeout 300 node --test test/*.test.js
  command -v npm >/dev/null || { skip "JavaScript's package: npm isn't installed"; return 0; }
  echo "test-clients: JavaScript, the package in a clean folder"
  npm pack --silent --pack-destination "$work" >/dev/null
  mkdir "$work/node"
  echo '{ "type": "module" }' >"$work/node/package.json"
  (cd "$work/node" && npm install --silent --offline --no-audit --no-fund "$work"/sluice-client-*.tgz)
  (cd "$work/node" && node -e 'import("sluice-client").then(({ connect }) => console.log("test-clients: installed", typeof connect))')
}

tested=
if has_python; then (test_python); (test_newest_python); tested=yes; fi
if has_node; then (test_javascript); tested=yes; fi
[ -n "$tested" ] || exit 3
