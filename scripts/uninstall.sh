#!/usr/bin/env bash
# Removes all that scripts/install.sh has installed, and stops the service. Keeps configuration and records unless an option
# says otherwise.
set -euo pipefail

usage() {
  cat <<'END'
scripts/uninstall.sh [options]     as root, unless --destdir is a folder of yours
  --prefix DIR      where it was installed (default /usr/local)
  --destdir DIR     everything is below DIR
  --purge           remove /etc/sluice/sluiced.toml, /var/lib/sluice with all records, and the user 'sluice' as well
  --dry-run         say what would be done
  --help            this
END
}

PREFIX=/usr/local DESTDIR='' PURGE='' DRY=''
say() { echo "uninstall: $*" >&2; }
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --destdir)
      [ -n "${2:-}" ] || { say "$1 needs a directory"; exit 2; }
      case $1 in --prefix) PREFIX=$2 ;; --destdir) DESTDIR=${2%/} ;; esac
      shift
      ;;
    --purge) PURGE=yes ;;
    --dry-run) DRY=yes ;;
    --help | -h) usage; exit 0 ;;
    *) say "unknown option $1"; usage >&2; exit 2 ;;
  esac
  shift
done
PREFIX=${PREFIX%/}
if [ -z "$DESTDIR" ] && [ -z "$DRY" ] && [ "$(id -u)" -ne 0 ]; then
  say "this needs root: run it with sudo, or with --destdir for a folder of yours"
  exit 1
fi

run() {
  if [ -n "$DRY" ]; then echo "$*"; else "$@"; fi
}

case $PREFIX in
  /usr) units=/lib/systemd/system ;;
  /usr/local) units=/usr/local/lib/systemd/system ;;
  *) units=/etc/systemd/system ;;
esac
service=
if [ -e "$DESTDIR$units/sluiced.service" ]; then service=yes; fi
if [ -n "$service" ] && [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; then
  run systemctl disable --now sluiced.service sluice-backup.timer
fi

# In the order of install.sh.
files=("$PREFIX/bin/sluiced" "$PREFIX/bin/sluice")
for page in "$DESTDIR$PREFIX"/share/man/man[1-8]/sluice*.[1-8]; do
  if [ -e "$page" ]; then files+=("${page#"$DESTDIR"}"); fi
done
files+=(
  "$PREFIX"/share/bash-completion/completions/sluice{,d} "$PREFIX"/share/zsh/site-functions/_sluice{,d}
  "$PREFIX"/share/fish/vendor_completions.d/sluice{,d}.fish "$units/sluiced.service"
  "$units"/sluice-backup.{service,timer}
)
for file in "${files[@]}"; do
  if [ -e "$DESTDIR$file" ]; then run rm -f "$DESTDIR$file"; fi
done
if [ -n "$service" ] && [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; then run systemctl daemon-reload; fi

if [ -n "$PURGE" ]; then
  run rm -rf "$DESTDIR/var/lib/sluice"
  run rm -f "$DESTDIR/etc/sluice/sluiced.toml"
  # Keys and permissions that the administrator added stay.
  if [ -d "$DESTDIR/etc/sluice" ]; then run rmdir --ignore-fail-on-non-empty "$DESTDIR/etc/sluice"; fi
  if [ -z "$DESTDIR" ] && getent passwd sluice >/dev/null; then run userdel sluice; fi
else
  for kept in /etc/sluice /var/lib/sluice; do
    if [ -e "$DESTDIR$kept" ]; then say "$DESTDIR$kept stays; --purge removes it"; fi
  done
fi
