#!/bin/sh
# Fuzzes every decoder of SluiceWire and of SluiceStore with libFuzzer and the address sanitizer.
#
#   scripts/fuzz.sh [SECONDS] [TARGET]...     SECONDS for each target, 60 unless told; all targets unless told
#
# Inputs that reach something new gather in .build/fuzz/corpus. An input that fails is kept in Tests/Fuzz/Corpus/TARGET, where
# `swift test` replays it from then on. Exits 1 when there was one.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
case $seconds in
*[!0-9]* | '')
  echo "usage: scripts/fuzz.sh [SECONDS] [TARGET]..." >&2
  exit 2
  ;;
esac
targets=${*:-streams bodies batches topicNames topicRows exports exportSections storedBatches}

build=.build/fuzz
mkdir -p "$build"
flags="-O -g -use-ld=lld -swift-version 6 -sanitize=fuzzer,address -parse-as-library -package-name sluice"
flags="$flags -I $build -I Sources/CLMDB -I Sources/CXXHash"
for module in SluiceWire SluiceStore; do
  # shellcheck disable=SC2086,SC2046
  swiftc $flags -wmo -module-name $module -emit-module -emit-module-path "$build/$module.swiftmodule" \
    -emit-library -static -o "$build/lib$module.a" $(find Sources/$module -name '*.swift')
done
# shellcheck disable=SC2086
swiftc $flags -L "$build" -lSluiceStore -lSluiceWire -llmdb Tests/Fuzz/Fuzz.swift \
  Tests/TestSupport/WireProbe.swift Tests/SluiceStoreTests/StoreProbe.swift -o "$build/fuzz"

failed=0
for target in $targets; do
  kept=Tests/Fuzz/Corpus/$target
  mkdir -p "$build/corpus/$target" "$kept"
  echo "== $target, $seconds s"
  SLUICE_FUZZ_TARGET=$target "$build/fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="$kept/" "$build/corpus/$target" "$kept" 2>"$build/$target.log" || failed=1
  grep -E '^(stat::|#.*(DONE|INITED))|ERROR|Fatal error|Test unit written' "$build/$target.log" || true
done
exit $failed
