#!/bin/sh
# Fuzzes all code that takes bytes or text from outside, with libFuzzer and the address sanitizer: one target after another.
#
#   scripts/fuzz.sh [SECONDS] [TARGET]...     SECONDS for each target, default 60; default: all targets
#   scripts/fuzz.sh list                      lists the targets
#
# A target is a case of a Probe in Tests. Inputs that reach new code are collected in .build/fuzz/corpus, which grows from run to run. An
# input that fails is kept in Tests/Fuzz/Corpus/TARGET, and `swift test` replays it in each later run. Prints a line for each target;
# exits 1 when there was a failure.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
case $seconds in
list) ;;
*[!0-9]*)
  echo "usage: scripts/fuzz.sh [SECONDS] [TARGET]..., or scripts/fuzz.sh list" >&2
  exit 2
  ;;
esac

build=.build/fuzz
mkdir -p "$build/modules"
modules="ReactiveCore SluiceWire SluiceLog SluiceSession SluiceStore SluiceStoreLMDB SluiceIO SluiceSimulation SluiceTLS SluiceNATS SluiceAccess SluiceTopics
  SluiceBroker SluiceClient SluiceCommand SluiceHTTP SluiceWebSocket SluiceMQTT SluiceDoors SluiceCluster SluiceAdmin SluiceDaemon SluiceTool"
probes="Tests/SluiceAccessTests/AccessProbe.swift Tests/SluiceStoreTests/StoreProbe.swift
  Tests/SluiceNATSTests/Probes/*.swift
  Tests/SluiceBrokerTests/Probes/*.swift Tests/SluiceBrokerTests/SessionProbe.swift
  Tests/SluiceClientTests/Probes/*.swift Tests/SluiceClientTests/Support/Box.swift Tests/SluiceCommandTests/Probes/*.swift
  Tests/SluiceHTTPTests/HTTPSessionProbe.swift
  Tests/SluiceWebSocketTests/WebSocketProbe.swift Tests/SluiceWebSocketTests/EchoServer.swift
  Tests/SluiceWebSocketTests/CompressedStream.swift Tests/SluiceWebSocketTests/DecodedEvent.swift
  Tests/SluiceMQTTTests/MQTTProbe.swift Tests/SluiceMQTTTests/MQTTSessionProbe.swift Tests/SluiceMQTTTests/SessionRig.swift
  Tests/SluiceMQTTTests/OwnedPacket.swift Tests/SluiceMQTTTests/PacketCollector.swift
  Tests/SluiceDoorsTests/HTTPProbe.swift Tests/SluiceDoorsTests/MQTTValueProbe.swift"

# One library per module that has changed.
flags="-O -g -use-ld=lld -swift-version 6 -sanitize=fuzzer,address -parse-as-library -package-name sluice -enable-testing"
flags="$flags -enable-upcoming-feature ExistentialAny -enable-upcoming-feature MemberImportVisibility"
flags="$flags -I $build/modules -I Sources/CLinux -I Sources/CLMDB -I Sources/CXXHash -I Sources/COpenSSL -I Sources/CZlib"
flags="$flags -I $build/modules/CTOML"
newest=$build/flags
printf '%s\n' "$flags" | cmp -s - "$newest" || printf '%s\n' "$flags" >"$newest"
compile() {
  module=$1 archive=$build/lib$1.a
  shift
  if [ ! -e "$archive" ] || [ -n "$(find "$@" "$newest" -newer "$archive")" ]; then
    # shellcheck disable=SC2086
    swiftc $flags -wmo -module-name "$module" -emit-module -emit-module-path "$build/modules/$module.swiftmodule" \
      -Xfrontend -entry-point-function-name -Xfrontend "${module}_main" -emit-library -static -o "$archive" "$@"
    newest=$archive
  elif [ -n "$(find "$archive" -newer "$newest")" ]; then
    newest=$archive
  fi
}
# The C++ sources, with the module map that the package manager writes for its own builds.
mkdir -p "$build/modules/CTOML"
printf 'module CTOML {\n  header "%s/Sources/CTOML/include/CTOML.h"\n  export *\n}\n' "$PWD" \
  >"$build/modules/CTOML/module.modulemap"
if [ ! -e "$build/libCTOML.a" ] || [ -n "$(find Sources/CTOML -newer "$build/libCTOML.a")" ]; then
  clang++ -std=c++17 -O1 -g -fsanitize=fuzzer-no-link,address -I Sources/CTOML/include -c Sources/CTOML/CTOML.cpp -o "$build/CTOML.o"
  rm -f "$build/libCTOML.a"
  ar rcs "$build/libCTOML.a" "$build/CTOML.o"
  newest=$build/libCTOML.a
fi
# The files that a module embeds, as the package manager writes them for its own builds.
embedded="$build/modules/PackageResources.swift"
{
  echo 'struct PackageResources {'
  find Sources/SluiceAdmin/Dashboard -type f ! -name '*.swift' | sort | while read -r file; do
    name=$(basename "$file" | tr -c 'A-Za-z0-9\n' '_')
    printf '  static let %s: [UInt8] = [%s]\n' "$name" "$(od -An -v -tu1 "$file" | tr -s ' \n' ',' | sed 's/^,//')"
  done
  echo '}'
} >"$embedded.new"
if cmp -s "$embedded.new" "$embedded"; then rm "$embedded.new"; else mv "$embedded.new" "$embedded"; fi

# Sources of a module outside its folder.
generated() { if [ "$1" = SluiceAdmin ]; then echo "$embedded"; fi; }
# shellcheck disable=SC2046
for module in $modules; do compile "$module" $(find "Sources/$module" -name '*.swift') $(generated "$module"); done
compile TestSupport Tests/TestSupport/Probes/*.swift Tests/TestSupport/Threads.swift
link="-L $build -lTestSupport -lCTOML"
for module in $modules; do link="-l$module $link"; done
if [ ! -e "$build/fuzz" ] || [ -n "$(find $probes Tests/Fuzz/Fuzz.swift "$newest" -newer "$build/fuzz")" ]; then
  # shellcheck disable=SC2086
  swiftc $flags -module-name Fuzz Tests/Fuzz/Fuzz.swift $probes -Xlinker --start-group $link -Xlinker --end-group \
    -llmdb -lssl -lcrypto -lz -lstdc++ -o "$build/fuzz"
fi

all=$("$build/fuzz")
if [ "$seconds" = list ]; then
  echo "$all"
  exit
fi
[ $# -gt 0 ] && shift

failed=0
for target in ${*:-$all}; do
  kept=Tests/Fuzz/Corpus/$target
  mkdir -p "$build/corpus/$target" "$kept"
  log=$build/$target.log
  verdict=clean
  SLUICE_FUZZ_TARGET=$target "$build/fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="$kept/" "$build/corpus/$target" "$kept" 2>"$log" || verdict=FAILED
  awk -v target="$target" -v seconds="$seconds" -v verdict="$verdict" '
    /^#[0-9]+/ { for (i = 2; i <= NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) } }
    /^stat::number_of_executed_units/ { runs = $2 }
    END { printf "%-18s %4d s %12s runs  cov %6s  ft %6s  %s\n", target, seconds, runs, cov, ft, verdict }' "$log"
  if [ "$verdict" = FAILED ]; then
    failed=1
    grep -E 'ERROR|Fatal error|Test unit written' "$log" || true
  fi
done
exit $failed
