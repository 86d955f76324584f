#!/usr/bin/env bash
# Counts the instructions that an optimised build executes for fixed loads through codec, log, store, broker, client and Combine core, with valgrind's callgrind. These numbers don't
# depend on the machine's load. Compares them with Benchmarks/instructions.tsv, and fails when a row has grown by more than 5 %, naming the functions that grew.
#
#   scripts/instructions.sh                  compare
#   scripts/instructions.sh --record         write the tables again: in a change that is meant to alter them
#   scripts/instructions.sh --filter TEXT    only loads with TEXT in their names (compares only)
#
# Exits with 0 when no row has grown, 1 when one has, 2 when it can't compare.
set -euo pipefail
cd "$(dirname "$0")/.."

tolerance=5
rows=Benchmarks/instructions.tsv
functions=Benchmarks/instructions-by-function.tsv

say() { echo "instructions: $*" >&2; }
fail() { say "$*"; exit 2; }

record=false filter=
while [ $# -gt 0 ]; do
  case $1 in
    --record) record=true ;;
    --filter) filter=${2:?"--filter needs a text"}; shift ;;
    *) fail "there is no option '$1'; there are --record and --filter TEXT" ;;
  esac
  shift
done
! $record || [ -z "$filter" ] || fail "--record writes all rows; leave --filter out"
for program in valgrind callgrind_annotate; do
  command -v "$program" >/dev/null || fail "$program is missing; scripts/bootstrap.sh --instructions installs it"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build=(swift build -c release --package-path Benchmarks --scratch-path .build/instructions)
"${build[@]}" --product sluice-bench >"$work/build.log" 2>&1 ||
  { cat "$work/build.log" >&2; fail "the benchmark doesn't build"; }
bench=$("${build[@]}" --show-bin-path)/sluice-bench

# A repeated string instruction counts once per byte. glibc copies long memory with one, and its count would hide all others.
never=0x7fffffff
export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=$never:glibc.cpu.x86_rep_stosb_threshold=$never

# "LOAD function INSTRUCTIONS-PER-UNIT" for one load, separated by tabs.
count() {
  local load=$1 units=$2
  valgrind --tool=callgrind --toggle-collect='*measuredLoad*' --callgrind-out-file="$work/out" \
    "$bench" fixed "$load" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the load '$load' has failed"; }
  # Lines like "  1,234 ( 5.67%)  FILE:FUNCTION [OBJECT]".
  callgrind_annotate --threshold=100 --auto=no "$work/out" |
    sed -nE 's/^ *([0-9,]+) \( *[0-9.]+%\)  (\S*:)?(.*)$/\1\t\3/p' | sed -E 's/ \[[^]]*\]$//' |
    { grep -v -e 'PROGRAM TOTALS' || true; } | swift demangle --simplified |
    awk -F'\t' -v load="$load" -v units="$units" '
      { gsub(",", "", $1); sum[$2] += $1 }
      END { for (name in sum) printf "%s\t%s\t%.3f\n", load, name, sum[name] / units }'
}

say "counting; $(uname -m), $(swift --version 2>/dev/null | sed -nE 's/.*(Swift version [0-9.]+).*/\1/p' | head -1)"
: >"$work/functions"
while IFS=$'\t' read -r load unit units; do
  case $load in *"$filter"*) ;; *) continue ;; esac
  count "$load" "$units" >>"$work/functions"
  printf '%s\t%s\n' "$load" "$unit" >>"$work/units"
done < <("$bench" fixed --list)
[ -s "$work/functions" ] || fail "no load has '$filter' in its name"

# Copies of memory have a column of their own, since their amount depends on the records and the simulated sockets.
awk -F'\t' '
  NR == FNR { unit[$1] = $2; order[++n] = $1; next }
  $2 ~ /^_*(memcpy|memmove|memset)/ { copying[$1] += $3; next }
  { other[$1] += $3 }
  END { for (i = 1; i <= n; i++) printf "%s\t%s\t%.1f\t%.1f\n", order[i], unit[order[i]], other[order[i]], copying[order[i]] }
' "$work/units" "$work/functions" >"$work/rows"

if $record; then
  mkdir -p Benchmarks
  { printf 'load\tunit\tinstructions\tcopying\n'; cat "$work/rows"; } >"$rows"
  # Functions below a hundredth of their row's count mean little and change with every build.
  {
    printf 'load\tfunction\tinstructions\n'
    awk -F'\t' 'NR == FNR { total[$1] = $3 + $4; next } $3 >= total[$1] / 100' "$work/rows" "$work/functions" |
      LC_ALL=C sort -t$'\t' -k1,1 -k3,3nr -k2,2
  } >"$functions"
  say "wrote $rows and $functions"
  exit 0
fi

[ -f "$rows" ] || fail "$rows is missing; scripts/instructions.sh --record writes it"
# A difference of less than one instruction per unit is rounding.
awk -F'\t' -v tolerance=$tolerance -v filter="$filter" '
  FNR == 1 { file++ }
  file == 1 { if (FNR > 1) { was[$1] = $3; copied[$1] = $4 } next }
  file == 2 { now[$1] = 1
    grown = !($1 in was) ? 0 : $3 > was[$1] * (1 + tolerance / 100) && $3 - was[$1] > 1 || $4 > copied[$1] * (1 + tolerance / 100) && $4 - copied[$1] > 1
    printf "%-60s %9.1f %9.1f  copying %8.1f %8.1f %s\n", $1, was[$1], $3, copied[$1], $4, grown ? "  GROWN" : ($1 in was) ? "" : "  NEW"
    if (grown) bad[$1] = 1
    if (!($1 in was)) fresh[$1] = 1 }
  END { for (load in bad) print load > "/dev/fd/3"; for (load in fresh) print load > "/dev/fd/4"
    for (load in was) if (!(load in now) && index(load, filter)) print load > "/dev/fd/4" }
' "$rows" "$work/rows" 3>"$work/bad" 4>"$work/fresh"

while read -r load; do
  say "'$load' has grown by more than $tolerance %; these functions by the most, in instructions for each unit:"
  awk -F'\t' -v load="$load" '
    NR == FNR { if ($1 == load) was[$2] = $3; next }
    $1 == load && $3 > was[$2] { printf "%f\t%12s -> %10.2f  %s\n", $3 - was[$2], ($2 in was) ? sprintf("%.2f", was[$2]) : "below 1 %", $3, $2 }
  ' "$functions" "$work/functions" | sort -rn | head -8 | cut -f2 >&2
done <"$work/bad"
if [ -s "$work/fresh" ]; then
  say "these loads stand on one side only; --record takes them over:"
  sed 's/^/  /' "$work/fresh" >&2
fi
[ ! -s "$work/bad" ] && [ ! -s "$work/fresh" ]
