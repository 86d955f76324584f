#!/usr/bin/env bash
# Runs every code block of README.md and of the articles unchanged, compiles those of the doc comments, and fails when a block's result differs from the page,
# or a block has no known kind.
#
#   scripts/documentation-examples.sh                the README and all articles
#   scripts/documentation-examples.sh FILE...        these pages
#   scripts/documentation-examples.sh --self-test    plants mistakes, and checks that each is found
#
# Swift is compiled with the modules that scripts/check.sh has built (they are built if missing) and runs. Shell blocks run with the built programs in PATH.
# Directives in comments before a block add details: see scripts/documentation-examples/Block.swift. Examples use port 7420, so they run in
# namespaces of their own. If the system doesn't allow that, they use the machine's port, and the script ends with 2 when it is in use.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/strict.sh
root=$PWD

case ${1:-} in
--self-test) [ $# -eq 1 ] || exit 2 ;;
-*)
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
'')
  # The tutorials share a broker, so they run in the order of the landing page.
  guides=Sources/Documentation/Sluice.docc
  pages=(README.md)
  while IFS= read -r name; do pages+=("$guides/$name.md"); done < <(sed -n '/^### Tutorials$/,/^### Use$/s/^- <doc:\(.*\)>$/\1/p' "$guides/Sluice.md")
  while IFS= read -r page; do
    [[ " ${pages[*]} " = *" $page "* ]] || pages+=("$page")
  done < <(find Sources -path '*.docc/*.md' | LC_ALL=C sort)
  set -- "${pages[@]}"
  ;;
esac

swift build "${strict[@]}" </dev/null
programs=$(swift build "${strict[@]}" --show-bin-path)
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-examples.XXXXXX")
trap 'rm -rf "$work"' EXIT
swiftc -swift-version 6 -warnings-as-errors -o "$work/runner" scripts/documentation-examples/*.swift
run=("$work/runner" "$@" --root "$root" --programs "$programs" --work "$work")

# Prepares the namespaces: a loopback interface, and the host name that pages mention.
enter='
ip link set lo up
{ cat /etc/hosts; echo "127.0.0.1 localhost broker.example.org"; } >"$1/hosts"
mount --bind "$1/hosts" /etc/hosts
shift
exec "$@"'
if unshare -rnm bash -euc "$enter" enter "$work" true 2>/dev/null; then
  unshare -rnm bash -euc "$enter" enter "$work" "${run[@]}" --isolated yes
else
  for port in 7420 7421; do
    if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "documentation-examples: port $port is taken by another process; the examples need it" >&2
      exit 2
    fi
  done
  "${run[@]}" --isolated no
fi
