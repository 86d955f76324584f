#!/usr/bin/env bash
# Compares packaging/openapi.yaml with the admin listener of a running broker, and `packaging/openapi-doors.yaml` with its HTTP gateway. schemathesis sends generated requests, valid and
# invalid, and checks each response. Takes 20 seconds.
#
#   scripts/check-api.sh [--programs DIRECTORY]     DIRECTORY has sluiced and sluice; default: the release build
#   scripts/check-api.sh --install                  installs schemathesis only
#
# Installs schemathesis in .build/schemathesis with pip when it isn't in PATH. Exits with 0 when every response is as described, 1 otherwise, 2 when it can't compare.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=.build/release install=
case ${1:-} in
'') ;;
--install) [ $# -eq 1 ] || exit 2; install=yes ;;
--programs) [ $# -eq 2 ] || exit 2; programs=$2 ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
fail() { echo "check-api: $*" >&2; exit 2; }
tool=$(scripts/python-tool.sh schemathesis 'schemathesis>=4,<5')
[ -z "$install" ] || exit 0
[ -x "$programs/sluiced" ] || fail "there is no sluiced in $programs; build it, or name a folder with --programs"
programs=$(cd "$programs" && pwd)

work=$(mktemp -d)
processes=()
groups=()
finish() {
  [ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
  # A subscriber that gets a signal to end waits for the command that it runs, so both get the signal.
  for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  wait
  cd /
  rm -rf "$work"
}
trap finish EXIT
"$programs/sluiced" --listen "unix:$work/broker" --listen http://127.0.0.1:0 --admin 127.0.0.1:0 --admin-actions on --data "$work/data" >"$work/ready" 2>"$work/log" &
processes+=($!)
for _ in $(seq 100); do
  ! grep -q ready "$work/ready" || break
  sleep 0.1
done
address=$(sed -n 's/^sluiced admin on //p' "$work/ready")
door=$(sed -n 's/^sluiced listening on \(http:.*\)$/\1/p' "$work/ready")
[ -n "$address" ] && [ -n "$door" ] || { cat "$work/log" >&2; fail "the broker doesn't start"; }

# One of each kind: records with keys and headers, a durable topic, a group, a cursor, a blocked producer, an ended topic.
export SLUICE_SERVER=unix:$work/broker PATH=$programs:$PATH
sluice topic create orders --storage durable >/dev/null
seq 100 | sluice pub orders --key k --header a=b --quiet
printf '\377\376' | sluice pub orders --raw --quiet 2>/dev/null || true
sluice sub orders --cursor billing --count 10 --quiet >/dev/null
sluice topic create jobs --flow lossless --buffer-records 0 >/dev/null
setsid sluice sub orders --group workers --from earliest --ack explicit --exec 'sleep 150' >/dev/null 2>&1 &
groups+=($!)
setsid sluice sub jobs --exec 'sleep 150' >/dev/null 2>&1 &
groups+=($!)
seq 1000 | sluice pub jobs --quiet >/dev/null 2>&1 &
processes+=($!)
sluice pub over one --complete --quiet
sleep 3

# The stream of events doesn't end, so it isn't requested here.
code=0
# schemathesis writes files into the folder in which it runs.
specification=$PWD/packaging/openapi.yaml
doors=$PWD/packaging/openapi-doors.yaml
cd "$work"
token=$(curl --silent --fail "http://$address/" | sed -n 's/.*name="sluice-token" content="\([^"]*\)".*/\1/p')
[ -n "$token" ] || fail "the page has no token"
"$tool" run "$specification" --url "http://$address" --exclude-path /api/events --checks all \
  --header "Origin: http://$address" --header "Sluice-Token: $token" \
  --exclude-checks ignored_auth,unsupported_method,positive_data_acceptance --max-examples 30 --seed 1 --generation-database none --no-color >"$work/report" 2>&1 || code=$?
tail -40 "$work/report"
# Streams of records don't end, and a request waits for a responder's reply, so neither is sent here. The description doesn't specify which texts are valid times, positions and settings,
# so valid data may be rejected.
"$tool" run "$doors" --url "$door" --exclude-operation-id readTopic --exclude-operation-id readRequests --exclude-operation-id request --checks all \
  --exclude-checks ignored_auth,unsupported_method,positive_data_acceptance,negative_data_rejection --max-examples 30 --seed 1 --generation-database none --no-color >"$work/doors-report" 2>&1 || code=$?
tail -40 "$work/doors-report"
[ "$code" = 0 ] || exit 1
