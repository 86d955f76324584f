#!/usr/bin/env bash
# Tests the Debian package in a temporary container: it installs, serves, is upgraded with all records, is removed, and leaves nothing.
# If docker doesn't answer, this system is a Debian and the user is root, the container is an overlay of this system in namespaces of its own.
set -euo pipefail

usage() {
  cat <<'END'
scripts/test-deb.sh [options]     needs docker, or root on a Debian; dpkg-dev, and what is needed to build
  --programs DIR    package sluiced and sluice from there instead of building them
  --image NAME      a Debian (default: sluice-base of scripts/local-base-images.sh, which makes it). With systemd in it, it is
                    booted, and the service is tried; without, the broker is started by hand
  --overlay         an overlay of this system instead, also where docker answers
  --help            this
END
}

PROGRAMS='' IMAGE='' OVERLAY=''
say() { echo "test-deb: $*"; }
while [ $# -gt 0 ]; do
  case $1 in
    --programs | --image)
      [ -n "${2:-}" ] || { say "$1 needs a value" >&2; exit 2; }
      case $1 in --programs) PROGRAMS=$(cd "$2" && pwd) ;; --image) IMAGE=$2 ;; esac
      shift
      ;;
    --overlay) OVERLAY=yes ;;
    --help | -h) usage; exit 0 ;;
    *) say "unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
if [ -z "$OVERLAY$IMAGE" ] && ! docker info >/dev/null 2>&1; then
  say "no docker answers: trying the package in an overlay of this system"
  OVERLAY=yes
fi
if [ -n "$OVERLAY" ]; then
  [ "$(id -u)" -eq 0 ] || { say "an overlay of this system needs root" >&2; exit 2; }
  if getent passwd sluice >/dev/null || [ -e /etc/sluice ] || [ -e /usr/bin/sluiced ]; then
    say "sluice is installed here; an overlay of this system would have it already" >&2
    exit 2
  fi
elif [ -z "$IMAGE" ]; then
  IMAGE=$(scripts/local-base-images.sh base)
fi
if [ -z "$PROGRAMS" ]; then
  PROGRAMS=$PWD/.build/programs
  scripts/release.sh --no-profile "$PROGRAMS"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test-deb.XXXXXX")
container=
holder=
finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$container" ]; then
    if [ "$code" -ne 0 ] && [ -n "$SYSTEMD" ]; then inside journalctl --no-pager -n 30 -u sluiced || true; fi
    docker rm --force --volumes "$container" >/dev/null 2>&1 || true
  fi
  if [ "$code" -ne 0 ] && [ -s "$work/broker.log" ]; then tail -n 30 "$work/broker.log"; fi
  # The first process of the namespaces is killed, which ends all others and removes the mounts.
  if [ -n "$holder" ]; then kill -9 "$holder" 2>/dev/null || true; fi
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

SYSTEMD=
beginContainer() {
  inside() { docker exec --interactive "$container" "$@"; }
  detach() { docker exec --detach "$container" "$@"; }
  start=(sleep infinity)
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
  # The dependencies come from Debian. The test compares files before and after, so no other package may change them.
  inside sh -c 'ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || apt-get update -qq' </dev/null >/dev/null
  inside apt-get install -y -qq --no-install-recommends adduser </dev/null >/dev/null 2>&1
  unpack() { inside apt-get install -y -qq --no-install-recommends "/packages/$1" </dev/null; }
  purge() { inside apt-get purge -y -qq --auto-remove sluice </dev/null; }
}

# This system, unchanged, with all changes in memory, and with its own processes and network. The dependencies must be installed
# here.
beginOverlay() {
  mkdir "$work/overlay"
  # shellcheck disable=SC2016 # for the shell in there
  unshare --mount --pid --net --ipc --uts --fork --kill-child bash -euc '
    overlay=$1
    mount -t tmpfs tmpfs "$overlay"
    mkdir "$overlay/upper" "$overlay/work" "$overlay/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$overlay/upper,workdir=$overlay/work" "$overlay/root"
    root=$overlay/root
    mkdir -p "$root/packages"
    mount --bind "$2" "$root/packages"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    for folder in run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
    ip link set lo up 2>/dev/null || true
    touch "$2/begun"
    exec sleep infinity
  ' begin "$work/overlay" "$work" &
  local starter=$!
  for _ in $(seq 100); do
    [ ! -e "$work/begun" ] || break
    kill -0 "$starter" 2>/dev/null || { say "this system allows no overlay in namespaces" >&2; exit 2; }
    sleep 0.1
  done
  holder=$(cat "/proc/$starter/task/$starter/children")
  holder=${holder%% *}
  inside() { nsenter --target "$holder" --mount --pid --net --ipc --uts chroot "$work/overlay/root" env -C / "$@"; }
  detach() { inside setsid "$@" </dev/null >/dev/null 2>>"$work/broker.log" & }
  unpack() { inside dpkg --install "/packages/$1" </dev/null; }
  purge() { inside dpkg --purge sluice </dev/null; }
}

if [ -n "$OVERLAY" ]; then beginOverlay; else beginContainer; fi
install() { unpack "${1##*/}" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; exit 1; }; }
answers() {
  for _ in $(seq 100); do
    if inside sluice ping --count 1 </dev/null >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  return 1
}
# Does the work of a service manager.
launch() {
  if [ -n "$SYSTEMD" ]; then return; fi
  # shellcheck disable=SC2046 # the words of the unit's command
  detach setpriv --reuid=sluice --regid=sluice --clear-groups $(inside sed -n 's/^ExecStart=//p' /lib/systemd/system/sluiced.service)
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
  # The log is only in systemd's journal, so there is nothing to rotate.
  check "its log is in the journal" eval 'inside journalctl --quiet -u sluiced -t sluiced | grep -q listening'
  check "with priorities" eval '[ -z "$(inside journalctl --quiet -u sluiced -p err)" ]'
  check "and in no file" eval '[ -z "$(inside find /var/log -name "*sluice*")" ]'
fi
check "an example of a journal of its own is there" has -s /usr/share/doc/sluice/journald@sluice.conf
# The daily copy: it is installed, disabled until the operator enables it, and its command works as the broker's user.
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
purge >/dev/null 2>&1
check "when it is purged, so are the records" hasnt -e /var/lib/sluice
check "and the user" eval '! knows_user'
# Copies belong to the operator.
inside rm -rf /var/lib/sluice-backup
files >"$work/after"
check "nothing is left" diff "$work/before" "$work/after"
say "all passed"
