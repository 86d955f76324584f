#!/usr/bin/env bash
# Makes a Debian package, sluice_VERSION_ARCH.deb, for the release of Debian on which it is built, or a later one.
set -euo pipefail

usage() {
  cat <<'END'
scripts/package-deb.sh [options]     needs dpkg-dev; prints the package's path
  --output DIR      where to (default .build)
  --programs DIR    package sluiced and sluice from there instead of building them
  --version TEXT    Debian's version (default: that of the programs, and -1)
  --maintainer TEXT the maintainer, 'NAME <ADDRESS>' (default: DEBFULLNAME and DEBEMAIL)
  --homepage URL    the project's page (default: none is named)
  --help            this
END
}

OUTPUT='' PROGRAMS='' VERSION='' MAINTAINER='' HOMEPAGE=''
say() { echo "package-deb: $*" >&2; }
fail() { say "$*"; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --output | --programs | --version | --maintainer | --homepage)
      [ -n "${2:-}" ] || { say "$1 needs a value"; exit 2; }
      case $1 in
        --output) OUTPUT=$2 ;; --programs) PROGRAMS=$2 ;; --version) VERSION=$2 ;;
        --maintainer) MAINTAINER=$2 ;; --homepage) HOMEPAGE=$2 ;;
      esac
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) say "unknown option $1"; usage >&2; exit 2 ;;
  esac
  shift
done
case $MAINTAINER in
  '') MAINTAINER="${DEBFULLNAME:-Sluice} <${DEBEMAIL:-sluice@localhost}>" ;;
  *?' <'?*@?*'>') ;;
  *) say "--maintainer: '$MAINTAINER' isn't like 'Ada Lovelace <ada@example.org>'"; exit 2 ;;
esac
case $HOMEPAGE in '' | http://?* | https://?*) ;; *) say "--homepage: '$HOMEPAGE' isn't an address on the web"; exit 2 ;; esac
for tool in dpkg-deb dpkg-shlibdeps; do
  command -v "$tool" >/dev/null || fail "$tool is needed: apt-get install dpkg-dev"
done
if [ -n "$PROGRAMS" ]; then PROGRAMS=$(cd "$PROGRAMS" && pwd) || fail "--programs: there is no such folder"; fi
if [ -n "$OUTPUT" ]; then OUTPUT=$(mkdir -p "$OUTPUT" && cd "$OUTPUT" && pwd); fi
cd "$(dirname "$0")/.."
OUTPUT=${OUTPUT:-$PWD/.build}
if [ -z "$PROGRAMS" ]; then
  PROGRAMS=$PWD/.build/programs
  say "building (a quarter of an hour the first time on two cores)"
  scripts/release.sh "$PROGRAMS"
fi

version=$("$PROGRAMS/sluiced" --version </dev/null)
VERSION=${VERSION:-${version#sluiced }-1}
architecture=$(dpkg --print-architecture)
# The same source gives the same package.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s); fi
export SOURCE_DATE_EPOCH

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/root
scripts/install.sh --prefix /usr --destdir "$root" --no-user --programs "$PROGRAMS"

# Files that Debian requires of every package.
chmod 755 "$root/var/lib/sluice"
zsh=$root/usr/share/zsh
if [ -d "$zsh/site-functions" ]; then mv "$zsh/site-functions" "$zsh/vendor-completions"; fi
if [ -d "$root/usr/share/man" ]; then find "$root/usr/share/man" -type f -exec gzip -9n {} +; fi
documents=$root/usr/share/doc/sluice
mkdir -p "$documents"
install -m 644 packaging/debian/copyright "$documents/copyright"
install -m 644 README.md "$documents/README.md"
install -m 644 packaging/systemd/journald@sluice.conf "$documents/journald@sluice.conf"
gzip -9nc CHANGELOG.md >"$documents/changelog.gz"
gzip -9nc >"$documents/changelog.Debian.gz" <<END
sluice ($VERSION) unstable; urgency=medium

  * See changelog.gz.

 -- $MAINTAINER  $(date --utc --date "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %T +0000')
END

# The packages that the programs need follow from the libraries with which they are linked.
mkdir -p "$work/debian"
printf 'Source: sluice\n\nPackage: sluice\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e root/usr/bin/sluiced -e root/usr/bin/sluice 2>"$work/shlibdeps.log") ||
  { cat "$work/shlibdeps.log" >&2; fail "dpkg-shlibdeps failed"; }
depends=${depends#shlibs:Depends=}

control=$root/DEBIAN
mkdir "$control"
for script in postinst prerm postrm; do install -m 755 "packaging/debian/$script" "$control/$script"; done
(cd "$root" && find etc -type f -printf '/%p\n') >"$control/conffiles"
(cd "$root" && find usr lib -type f -exec md5sum {} + | sort -k 2) >"$control/md5sums"
cat >"$control/control" <<END
Package: sluice
Version: $VERSION
Architecture: $architecture
Maintainer: $MAINTAINER
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends, adduser, init-system-helpers (>= 1.52)
Section: net
Priority: optional${HOMEPAGE:+
Homepage: $HOMEPAGE}
Description: message broker whose topics are replaying publishers
 Topics are totally ordered logs that producers publish to and that subscribers
 in other processes read with a demand of their own: each gets as many records
 as it asked for, those from before it came included, and back-pressure reaches
 producers. Topics may be in memory or durable.
 .
 This package has the broker, sluiced, as a service that listens on loopback
 until it is told otherwise, and the command line tool, sluice.
END

find "$root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$OUTPUT"
package=$OUTPUT/sluice_${VERSION}_$architecture.deb
# One thread, since the number of blocks must not depend on the number of cores.
threads=()
if dpkg-deb --help | grep -q -e --threads-max; then threads=(--threads-max=1); fi
dpkg-deb --root-owner-group "${threads[@]}" -Zxz --build "$root" "$package" >/dev/null
echo "$package"
