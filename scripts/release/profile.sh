#!/usr/bin/env bash
# Makes a profile of the programs: how often each part of their code runs under loads of all kinds. With it the compiler optimises the code that runs often.
# scripts/release.sh calls it.
#
#   scripts/release/profile.sh FILE
#
# Builds the programs with counters, and the load program. Starts brokers on loopback, lets clients publish and subscribe for about a minute, stops them,
# and writes the sums of all counters into FILE. If FILE already has a profile of the same programs, it is kept. If scripts/nats-server.sh has been run,
# a cluster's nodes are counted, too. No two profiles are the same, since loads are limited by time.
set -euo pipefail

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "profile: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -eq 1 ] || usage
case $1 in -*) usage ;; esac
mkdir -p "$(dirname "$1")"
file=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.."

# The toolchain contains llvm-profdata next to the compiler.
merge=$(dirname "$(readlink -f "$(command -v swift)")")/llvm-profdata
[ -x "$merge" ] || merge=$(command -v llvm-profdata) || fail "there is no llvm-profdata beside the swift that is on the path"

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-profile.XXXXXX")
broker=
finish() {
  trap - EXIT INT TERM
  if [ -n "$broker" ]; then kill "$broker" && wait "$broker" || true; fi 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
mkdir "$work/counts" "$work/bin"

# --- The programs

say "building the programs with counters"
options=(-c release -debug-info-format none --scratch-path .build/profile ${SLUICE_JOBS:+-j "$SLUICE_JOBS"} -Xswiftc -static-stdlib
  -Xswiftc -Xfrontend -Xswiftc -ir-profile-generate -Xswiftc -Xclang-linker -Xswiftc -fprofile-generate)
for program in sluiced sluice; do
  swift build "${options[@]}" --product "$program" </dev/null >&2
  cp "$(swift build "${options[@]}" --show-bin-path)/$program" "$work/bin/"
done

programs=$(cat "$work/bin/sluiced" "$work/bin/sluice" scripts/release/profile.sh | sha256sum)
if [ -s "$file" ] && [ "$(cat "$file.programs" 2>/dev/null)" = "$programs" ]; then
  say "$file is that of these programs"
  exit
fi

options=(-c release --package-path Benchmarks --scratch-path .build/bench ${SLUICE_JOBS:+-j "$SLUICE_JOBS"})
swift build "${options[@]}" --product sluice-bench </dev/null >&2
cp "$(swift build "${options[@]}" --show-bin-path)/sluice-bench" "$work/bin/"

# Each process writes its counters into its own file when it ends.
export LLVM_PROFILE_FILE="$work/counts/%p.profraw"
# Removes settings for the caller's own broker and clients.
for name in "${!SLUICE_@}" "${!SLUICED_@}"; do
  case $name in SLUICE_NATS_SERVER | SLUICE_JOBS) ;; *) unset "$name" ;; esac
done

# --- One broker, through all gateways

say "serving loads"
scripts/certs.sh "$work/certs" >/dev/null 2>&1
"$work/bin/sluiced" --admin off --listen 127.0.0.1:0 --listen mqtt://127.0.0.1:0 --listen http://127.0.0.1:0 --listen tls://127.0.0.1:0 \
  --allow-unauthenticated --tls-cert "$work/certs/server.pem" --tls-key "$work/certs/server.key" --data "$work/data" \
  >"$work/ready" 2>"$work/log" </dev/null &
broker=$!
for _ in $(seq 200); do
  if grep -q '^sluiced ready$' "$work/ready" || ! kill -0 "$broker" 2>/dev/null; then break; fi
  sleep 0.1
done
grep -q '^sluiced ready$' "$work/ready" || { cat "$work/log" >&2; fail "the broker didn't start within 20 s"; }
# The port of the address with that scheme.
port() { sed -n "s|^sluiced listening on $1[0-9.]*:||p" "$work/ready"; }
native=$(port '') mqtt=$(port mqtt://) http=$(port http://) tls=$(port tls://)

load() { # DRIVER PORT OPTION..., for two seconds unless told
  local driver=$1 port=$2
  shift 2
  timeout 120 "$work/bin/sluice-bench" load --driver "$driver" --port "$port" --warmup 0.2 "$@" >"$work/load" 2>&1 ||
    { cat "$work/load" >&2; fail "this load failed: $driver $*"; }
}

# A command-line client.
client() { timeout 120 "$work/bin/sluice" "$@" || fail "this failed: sluice $1"; }

# Throughput: few large reads and writes, with many records each.
for driver in sluice sluice-mqtt sluice-mqtt-qos1; do
  case $driver in sluice) at=$native ;; *) at=$mqtt ;; esac
  load $driver "$at" --size 128
  load $driver "$at" --size 1024 --publishers 4 --subscribers 16
  # Latency: many reads and writes with one record each, so most code runs once per record.
  load $driver "$at" --workload latency --rate 10000
  load $driver "$at" --workload latency --rate 2000
done
load sluice "$native" --size 16384 --subscribers 8
load sluice "$native" --size 128 --demand 100
load sluice "$native" --workload replay --size 128 --records 500000
load sluice "$native" --workload publish --size 128 --publishers 16
load sluice "$native" --workload publish --size 128 --publishers 4 --durable
load sluice "$native" --workload replay --size 128 --records 500000 --durable
load sluice-http "$http" --workload publish --size 128 --publishers 8 --batch 100
load sluice-http "$http" --size 128 --subscribers 20

# Command-line clients, without TLS and with it.
seq 1000000 >"$work/lines"
for server in 127.0.0.1:"$native" tls://127.0.0.1:"$tls"; do
  export SLUICE_SERVER=$server SLUICE_TLS_CA=$work/certs/authority.pem
  [[ $server = tls://* ]] || unset SLUICE_TLS_CA
  topic=${server%%:*}
  client pub "lines.$topic" --complete <"$work/lines"
  client sub "lines.$topic" >"$work/back"
  cmp -s "$work/lines" "$work/back" || fail "sluice sub hasn't returned what sluice pub was given"
  client topic list >/dev/null
done
unset SLUICE_SERVER SLUICE_TLS_CA
kill "$broker"
wait "$broker" || { cat "$work/log" >&2; fail "the broker didn't stop in good order"; }
broker=

# --- A cluster

if scripts/nats-server.sh --path >/dev/null 2>&1; then
  say "serving loads as a cluster"
  SLUICE_BIN_DIR=$work/bin timeout 600 scripts/bench-cluster.sh --rounds 1 --seconds 1 >"$work/load" 2>&1 ||
    { cat "$work/load" >&2; fail "the loads of a cluster failed"; }
else
  say "scripts/nats-server.sh hasn't been run: a cluster's nodes aren't counted"
fi

find "$work/counts" -name '*.profraw' -size +0 -print0 | xargs -0 "$merge" merge -o "$work/profile"
mv "$work/profile" "$file"
echo "$programs" >"$file.programs"
say "$file has the sums of $(find "$work/counts" -name '*.profraw' | wc -l) processes"
