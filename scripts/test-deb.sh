#!/usr/bin/env bash
# Tries the Debian package in a temporary container: it installs, serves, is upgraded with all records, is removed, and leaves nothing.
set -euo pipefail

usage() {
  cat <<'END'
scripts/test-deb.sh [options]     needs docker, dpkg-dev, and what is needed to build
  --programs DIR    package sluiced and sluice from there instead of building them
  --image NAME      a Debian (default: sluice-base of scripts/local-base-images.sh, which makes it). With systemd in it, it is
                    booted, and the service is tried; without, the broker is started by hand
  --help            this
END
}

PROGRAMS='' IMAGE=''
say() { echo "test-deb: $*"; }
while [ $# -gt 0 ]; do
  case $1 in
    --programs | --image)
      [ -n "${2:-}" ] || { say "$1 needs a value" >&2; exit 2; }
      case $1 in --programs) PROGRAMS=$(cd "$2" && pwd) ;; --image) IMAGE=$2 ;; esac
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) say "unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
if [ -z "$IMAGE" ]; then IMAGE=$(scripts/local-base-images.sh base); fi
if [ -z "$PROGRAMS" ]; then
  PROGRAMS=$PWD/.build/programs
  scripts/release.sh "$PROGRAMS"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test-deb.XXXXXX")
container=
finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$container" ]; then
    if [ "$code" -ne 0 ] && [ -n "$SYSTEMD" ]; then inside journalctl --no-pager -n 30 -u sluiced || true; fi
    docker rm --force --volumes "$container" >/dev/null 2>&1 || true
  fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then
    say "ok: $what"
  else
    say "FAILED: $what ($*)"
    exit 1
  fi
}

# --- Two versions of the package, and a Debian to install them on

version=$("$PROGRAMS/sluiced" --version </dev/null)
version=${version#sluiced }
old=$(scripts/package-deb.sh --programs "$PROGRAMS" --output "$work" --version "$version~previous-1")
new=$(scripts/package-deb.sh --programs "$PROGRAMS" --output "$work")

inside() { docker exec --interactive "$container" "$@"; }
start=(sleep infinity)
SYSTEMD=
options=(--volume "$work:/packages:ro")
if docker run --rm "$IMAGE" test -x /lib/systemd/systemd; then
  SYSTEMD=yes
  start=(/lib/systemd/systemd)
  # systemd needs privileges for its services, and writable control groups.
  options+=(
    --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --env container=docker
    --tmpfs /run --tmpfs /tmp --tmpfs /sys/fs/cgroup
  )
fi
container=$(docker run --detach "${options[@]}" "$IMAGE" "${start[@]}")
if [ -n "$SYSTEMD" ]; then
  for _ in $(seq 100); do
    case $(inside systemctl is-system-running 2>/dev/null || true) in running | degraded) break ;; esac
    sleep 0.2
  done
  check "systemd runs" inside test -d /run/systemd/system
fi

# The dependencies come from Debian. The files before and after are compared, so no other package may change them.
inside sh -c 'ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || apt-get update -qq' </dev/null >/dev/null
inside apt-get install -y -qq --no-install-recommends adduser </dev/null >/dev/null 2>&1
install() { inside apt-get install -y -qq --no-install-recommends "/packages/${1##*/}" </dev/null >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; exit 1; }; }
answers() {
  for _ in $(seq 100); do
    if inside sluice ping --count 1 </dev/null >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  return 1
}
# The part of a service manager.
launch() {
  if [ -n "$SYSTEMD" ]; then return; fi
  docker exec --detach "$container" setpriv --reuid=sluice --regid=sluice --clear-groups /usr/bin/sluiced --config /etc/sluice/sluiced.toml
}
quit() {
  if [ -n "$SYSTEMD" ]; then return; fi
  local process
  # shellcheck disable=SC2016 # for the shell in there
  process=$(inside sh -c 'for p in /proc/[0-9]*; do [ "$(cat "$p/comm")" = sluiced ] && echo "${p#/proc/}"; done; true')
  # shellcheck disable=SC2016
  inside sh -c 'kill "$1"; while [ -d "/proc/$1" ]; do sleep 0.1; done' sh "$process"
}
has() { inside test "$@"; }
hasnt() { ! inside test "$@"; }
knows_user() { inside getent passwd sluice >/dev/null; }
files() { inside find /etc /usr /lib /var /opt -xdev ! -path '/var/lib/dpkg/*' ! -path '/var/lib/apt/*' ! -path '/var/log/*' ! -path '/var/cache/*' ! -path '/etc/*-' | sort; }
records() { inside sluice sub orders --until-live </dev/null | cmp -s - "$work/records"; }

# --- Install, upgrade, remove and purge

files >"$work/before"
install "$old"
check "the programs are there" has -x /usr/bin/sluiced -a -x /usr/bin/sluice
check "there is a user" knows_user
check "the folder of records is that user's" [ "$(inside stat -c '%U:%G %a' /var/lib/sluice)" = "sluice:sluice 700" ]
check "the configuration is for the administrator and that user" [ "$(inside stat -c '%U:%G %a' /etc/sluice)" = "root:sluice 750" ]
launch
check "the broker answers" answers
if [ -n "$SYSTEMD" ]; then
  check "as a service" inside systemctl --quiet is-active sluiced
  check "which starts with the system" inside systemctl --quiet is-enabled sluiced
  check "and reloads" inside systemctl reload sluiced
  # systemd's journal is the log's only place: nothing to rotate.
  check "its log is in the journal" eval 'inside journalctl --quiet -u sluiced -t sluiced | grep -q listening'
  check "with priorities" eval '[ -z "$(inside journalctl --quiet -u sluiced -p err)" ]'
  check "and in no file" eval '[ -z "$(inside find /var/log -name "*sluice*")" ]'
fi
check "an example of a journal of its own is there" has -s /usr/share/doc/sluice/journald@sluice.conf
# The daily copy: there, off until the operator wants it, and what it would do works as the broker's user.
check "the timer of the copy is there" has -s /lib/systemd/system/sluice-backup.timer -a -s /lib/systemd/system/sluice-backup.service
check "and its service names programs that are there" inside sh -c 'test -x "$(sed -n "s/^ExecStart=\([^ ]*\).*/\1/p" /lib/systemd/system/sluice-backup.service)"'
if [ -n "$SYSTEMD" ]; then
  check "the timer isn't enabled" eval '! inside systemctl --quiet is-enabled sluice-backup.timer'
  check "and can be" inside systemctl --quiet enable --now sluice-backup.timer
  check "it is due within a day" eval 'inside systemctl list-timers --no-legend sluice-backup.timer | grep -q sluice-backup'
fi
inside sluice topic create orders --storage durable --sync always </dev/null >/dev/null
seq 20000 >"$work/records"
inside sluice pub orders --ack durable --quiet <"$work/records"
check "records are published" records
copies() { inside find /var/lib/sluice-backup -name 'topics-*.sluice' -size +0; }
if [ -n "$SYSTEMD" ]; then
  check "a copy is made beside the running broker" inside systemctl start sluice-backup.service
else
  # The command of the service.
  inside install -d -o sluice -g sluice -m 700 /var/lib/sluice-backup
  # shellcheck disable=SC2016 # for the shell in there
  inside setpriv --reuid=sluice --regid=sluice --clear-groups sh -c \
    "$(inside sed -n 's/^ExecStart=//p' /lib/systemd/system/sluice-backup.service)" </dev/null
fi
check "it is there" [ -n "$(copies)" ]

inside sh -c 'echo "# of the administrator" >>/etc/sluice/sluiced.toml'
quit
install "$new"
launch
check "after an upgrade the broker answers" answers
# shellcheck disable=SC2016 # dpkg's own
check "it is the new one" [ "$(inside dpkg-query -W -f '${Version}' sluice)" = "$version-1" ]
check "all records are there" records
check "and the configuration is as the administrator left it" inside grep -q administrator /etc/sluice/sluiced.toml

quit
inside dpkg --remove sluice </dev/null >/dev/null 2>&1
check "when it is removed the programs are gone" hasnt -e /usr/bin/sluiced
if [ -n "$SYSTEMD" ]; then check "and the service" eval '! inside systemctl --quiet is-active sluiced'; fi
check "records and configuration aren't" has -s /var/lib/sluice/data.mdb -a -s /etc/sluice/sluiced.toml
install "$new"
launch
check "installed again, the broker answers" answers
check "and all records are there" records

quit
inside apt-get purge -y -qq --auto-remove sluice </dev/null >/dev/null 2>&1
check "when it is purged, so are the records" hasnt -e /var/lib/sluice
check "and the user" eval '! knows_user'
# Copies are the operator's.
inside rm -rf /var/lib/sluice-backup
files >"$work/after"
check "nothing is left" diff "$work/before" "$work/after"
say "all passed"
