#!/usr/bin/env bash
# Draws the pictures of the documentation again from the real programs, as SVG: a terminal in which a slow subscriber blocks a producer, and the dashboard at that time.
#
#   scripts/screenshots.sh [--programs DIRECTORY]     DIRECTORY has sluiced and sluice; default: the release build
#
# Needs tmux and python3, and Chromium for the dashboard. The pictures are demand.svg and dashboard.svg in Sources/Documentation/Sluice.docc/Resources. To look at all views of the page,
# in both themes and at two widths: scripts/screenshots/dashboard.py ADDRESS png DIRECTORY.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=.build/release
case ${1:-} in
'') ;;
--programs) [ $# -eq 2 ] || exit 2; programs=$2 ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
programs=$(cd "$programs" && pwd)
for program in tmux python3 "$programs/sluiced" "$programs/sluice"; do
  command -v "$program" >/dev/null || { echo "screenshots: $program is missing" >&2; exit 2; }
done

work=$(mktemp -d)
session=(tmux -S "$work/tmux")
processes=()
finish() {
  "${session[@]}" kill-server 2>/dev/null || true
  [ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
"$programs/sluiced" --listen "unix:$work/broker" --admin 127.0.0.1:0 --data "$work/data" --admin-problem-hold 2s >"$work/ready" 2>"$work/log" &
processes+=($!)
for _ in $(seq 100); do
  ! grep -q ready "$work/ready" || break
  sleep 0.1
done

"${session[@]}" -f /dev/null new-session -d -x 108 -y 24 \
  "cd '$work' && PATH='$programs:$PATH' SLUICE_SERVER='unix:$work/broker' PS1='\$ ' HISTFILE= exec bash --norc -i"
# Types a line, and waits for the next prompt.
say() {
  "${session[@]}" send-keys -l "$1"
  "${session[@]}" send-keys Enter
  sleep 1
  for _ in $(seq 100); do
    sleep 0.2
    [ "$("${session[@]}" capture-pane -p | grep -v '^ *$' | tail -1)" != '$' ] || return 0
  done
  echo "screenshots: '$1' doesn't end" >&2
  exit 1
}
say 'set +m; clear'
say 'sluice topic create jobs --flow lossless --buffer-records 0'
say "sluice sub jobs --exec 'sleep 60' &"
sleep 2
say 'seq 1000000 | sluice pub jobs --quiet &'
sleep 6
say 'sluice why jobs'
"${session[@]}" capture-pane -p -J >"$work/screen"
python3 scripts/screenshots/terminal_svg.py <"$work/screen" >"$work/picture"
mv "$work/picture" Sources/Documentation/Sluice.docc/Resources/demand.svg

# --- The dashboard, in the same situation

if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  echo "screenshots: no picture of the dashboard: Chromium is missing" >&2
  exit 0
fi
export SLUICE_SERVER=unix:$work/broker PATH=$programs:$PATH
sluice topic create orders.eu --storage durable >/dev/null
sluice topic create prices --compact >/dev/null
for topic in orders.eu prices; do
  while sleep 0.02; do echo '{"total": 12}'; done | sluice pub "$topic" --key k --quiet &
  processes+=($!)
  sluice sub "$topic" >/dev/null &
  processes+=($!)
done
sluice sub orders.eu --group workers --ack auto >/dev/null &
processes+=($!)
# Before the subscriber, which sleeps for 60 seconds, asks for the next record.
sleep 30
python3 scripts/screenshots/dashboard.py "$(sed -n 's/^sluiced admin on //p' "$work/ready")" svg >"$work/picture"
mv "$work/picture" Sources/Documentation/Sluice.docc/Resources/dashboard.svg
