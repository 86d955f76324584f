#!/usr/bin/env bash
# Builds and installs Sluice: the programs, their man pages and completions, a systemd service, its configuration and its user.
set -euo pipefail

usage() {
  cat <<'END'
scripts/install.sh [options]     as root, unless --destdir is a folder of yours
  --prefix DIR      for programs, man pages, completions and the service (default /usr/local)
  --destdir DIR     put everything below DIR, as a package's builder wants it
  --programs DIR    install sluiced and sluice from there instead of building them
  --artifacts DIR   install those of the archive that scripts/release.sh --artifacts has put there, once it agrees with SHA256SUMS: needs no compiler
  --no-user         don't make the system user 'sluice'
  --dry-run         say what would be done
  --help            this

The configuration is /etc/sluice/sluiced.toml, records are in /var/lib/sluice. Both stay as they are when they are there
already. Nothing is started: systemctl enable --now sluiced does that. scripts/uninstall.sh takes it all away again.
END
}

PREFIX=/usr/local DESTDIR='' PROGRAMS='' ARTIFACTS='' MAKE_USER=yes DRY=''
say() { echo "install: $*" >&2; }
fail() { say "$*"; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --destdir | --programs | --artifacts)
      [ -n "${2:-}" ] || { say "$1 needs a directory"; exit 2; }
      case $1 in --prefix) PREFIX=$2 ;; --destdir) DESTDIR=$2 ;; --programs) PROGRAMS=$2 ;; --artifacts) ARTIFACTS=$2 ;; esac
      shift
      ;;
    --no-user) MAKE_USER='' ;;
    --dry-run) DRY=yes ;;
    --help | -h) usage; exit 0 ;;
    *) say "unknown option $1"; usage >&2; exit 2 ;;
  esac
  shift
done
case $PREFIX in /*) ;; *) say "--prefix: '$PREFIX' doesn't begin with /"; exit 2 ;; esac
PREFIX=${PREFIX%/}
if [ -n "$DESTDIR" ]; then DESTDIR=$(mkdir -p "$DESTDIR" && cd "$DESTDIR" && pwd); fi
if [ -n "$PROGRAMS" ]; then PROGRAMS=$(cd "$PROGRAMS" && pwd) || fail "--programs: there is no such folder"; fi
if [ -n "$ARTIFACTS" ]; then
  [ -z "$PROGRAMS" ] || { say "--programs and --artifacts both say where the programs are; give one of them"; exit 2; }
  ARTIFACTS=$(cd "$ARTIFACTS" && pwd) || fail "--artifacts: there is no such folder"
fi
cd "$(dirname "$0")/.."

CONFIGURATION=Docker/sluiced.toml
[ -r "$CONFIGURATION" ] || fail "the configuration to install, $CONFIGURATION, isn't there"
grep -q '^# data = "/var/lib/sluice"$' "$CONFIGURATION" || fail "$CONFIGURATION doesn't suggest /var/lib/sluice for data"
if [ -z "$DESTDIR" ] && [ -z "$DRY" ] && [ "$(id -u)" -ne 0 ]; then
  fail "this needs root: run it with sudo, or with --destdir for a folder of yours"
fi

# Runs a command, or prints it.
run() {
  if [ -n "$DRY" ]; then echo "$*"; else "$@"; fi
}

# FILE MODE SOURCE
put() {
  run mkdir -p "$DESTDIR${1%/*}"
  run install -m "$2" "$3" "$DESTDIR$1"
}

# --- The programs

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ -n "$ARTIFACTS" ]; then
  archives=("$ARTIFACTS"/sluice-*-linux-"$(uname -m)".tar.gz)
  [ -r "${archives[0]}" ] || fail "there is no sluice-VERSION-linux-$(uname -m).tar.gz in $ARTIFACTS; get the one for this processor, or build with scripts/release.sh"
  [ ${#archives[@]} -eq 1 ] || fail "there are archives of several versions in $ARTIFACTS: ${archives[*]##*/}; leave one"
  archive=${archives[0]##*/}
  [ -r "$ARTIFACTS/SHA256SUMS" ] || fail "there is no SHA256SUMS in $ARTIFACTS to compare $archive with"
  (cd "$ARTIFACTS" && grep -F "  $archive" SHA256SUMS | sha256sum --check --status) ||
    fail "$archive isn't what SHA256SUMS says: it is damaged or another version's; get both again"
  tar --extract --gzip --file "$ARTIFACTS/$archive" --directory "$work"
  PROGRAMS=$work/${archive%.tar.gz}/usr/local/bin
  for program in sluiced sluice; do
    "$PROGRAMS/$program" --version >/dev/null 2>"$work/err" </dev/null ||
      fail "$program of $archive doesn't run here: $(head -n 1 "$work/err"). Where a library is missing: apt-get install liblmdb0 libssl3 libstdc++6 libxxhash0 zlib1g"
  done
fi
if [ -z "$PROGRAMS" ]; then
  PROGRAMS=.build/programs
  say "building (a quarter of an hour the first time on two cores)"
  run scripts/release.sh "$PROGRAMS"
fi
for program in sluiced sluice; do
  if [ -z "$DRY" ] && [ ! -x "$PROGRAMS/$program" ]; then fail "there is no program $PROGRAMS/$program"; fi
  put "$PREFIX/bin/$program" 755 "$PROGRAMS/$program"
done

# --- Man pages and completions

# Its output is in $work/out.
asks() { # PROGRAM ARGUMENT...
  local program=$1
  shift
  "$PROGRAMS/$program" "$@" >"$work/out" 2>"$work/err" </dev/null || { cat "$work/err" >&2; fail "$program $* failed"; }
}

documentation() {
  local page shell program folder
  mkdir "$work/manual"
  asks sluice manual --directory "$work/manual"
  for page in "$work"/manual/*.[1-8]; do put "$PREFIX/share/man/man${page##*.}/${page##*/}" 644 "$page"; done
  for page in sluiced.8 sluiced.toml.5; do
    asks sluiced --manual="${page%.*}"
    put "$PREFIX/share/man/man${page##*.}/$page" 644 "$work/out"
  done
  for shell in bash zsh fish; do
    for program in sluice sluiced; do
      case $shell in
        bash) folder=bash-completion/completions/$program ;;
        zsh) folder=zsh/site-functions/_$program ;;
        fish) folder=fish/vendor_completions.d/$program.fish ;;
      esac
      if [ $program = sluice ]; then asks sluice completions $shell; else asks sluiced --completions $shell; fi
      put "$PREFIX/share/$folder" 644 "$work/out"
    done
  done
}
if [ -n "$DRY" ]; then
  echo "install what sluice manual and sluice completions print below $DESTDIR$PREFIX/share"
else
  documentation
fi

# --- The service

# systemd searches /usr and /usr/local; with another prefix the service goes to the administrator's directory.
case $PREFIX in
  /usr) units=/lib/systemd/system ;;
  /usr/local) units=/usr/local/lib/systemd/system ;;
  *) units=/etc/systemd/system ;;
esac
# The timer of the daily copy isn't enabled: systemctl enable --now sluice-backup.timer.
for unit in sluiced.service sluice-backup.service sluice-backup.timer; do
  sed "s|@BINDIR@|$PREFIX/bin|" "packaging/systemd/$unit" >"$work/$unit"
  put "$units/$unit" 644 "$work/$unit"
done

if [ -n "$MAKE_USER" ] && [ -z "$DESTDIR" ] && ! getent passwd sluice >/dev/null; then
  run useradd --system --user-group --home-dir /var/lib/sluice --no-create-home --shell /usr/sbin/nologin sluice
fi

if [ -e "$DESTDIR/etc/sluice/sluiced.toml" ]; then
  say "$DESTDIR/etc/sluice/sluiced.toml stays as it is"
else
  # The reference configuration with a directory for durable topics.
  sed 's|^# data = "/var/lib/sluice"$|data = "/var/lib/sluice"|' "$CONFIGURATION" >"$work/sluiced.toml"
  put /etc/sluice/sluiced.toml 644 "$work/sluiced.toml"
fi
run mkdir -p "$DESTDIR/var/lib/sluice"
run chmod 700 "$DESTDIR/var/lib/sluice"

if [ -z "$DESTDIR" ]; then
  if [ -n "$DRY" ] || getent passwd sluice >/dev/null; then
    # The directory will contain users and permissions, so only the administrator and the broker may read it.
    run chown root:sluice /etc/sluice
    run chmod 750 /etc/sluice
    run chown sluice:sluice /var/lib/sluice
  else
    say "there is no user sluice: give /var/lib/sluice to the one that runs the broker"
  fi
  if [ -d /run/systemd/system ]; then
    run systemctl daemon-reload
    [ -n "$DRY" ] || say "installed; start it with: systemctl enable --now sluiced"
  else
    [ -n "$DRY" ] || say "installed; start it with: $PREFIX/bin/sluiced --config /etc/sluice/sluiced.toml"
  fi
fi
