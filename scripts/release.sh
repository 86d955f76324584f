#!/usr/bin/env bash
# Builds the programs for shipping: whole-module and profile-guided optimisation, Swift's runtime linked in, no symbols. The same source and the same
# profile give the same bytes on every machine if modules are compiled one after the other.
#
#   scripts/release.sh DIR                      puts sluiced and sluice into DIR
#   scripts/release.sh --artifacts DIR [...]    puts all that users download into DIR: an archive of the programs, a Debian package,
#                                               the documentation as a site, a list of what is linked (CycloneDX), an image where docker
#                                               answers, RELEASE-NOTES.md, SHA256SUMS
#   scripts/release.sh --check                  makes the artifacts twice, in folders of different names, and compares them
#
#     --maintainer 'NAME <ADDRESS>'   of the package; default: DEBFULLNAME and DEBEMAIL
#     --homepage URL                  of the package and of the list
#     --no-image                      no image
#     --no-documentation              no documentation
#     --profile FILE                  optimise for this profile: a release's NAME.profdata.gz, or a file of scripts/release/profile.sh
#     --no-profile                    for none: takes half the time, and the programs are slower
#
# Without either, the programs are first built with counters, and serve loads on loopback for a minute. They need the C library of this system, or a newer one,
# and the libraries in the list of --artifacts. SLUICE_JOBS is the number of compilers at a time; default: one for --artifacts and --check, otherwise all cores.
set -euo pipefail

usage() { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "release: $*" >&2; }
fail() { say "$*"; exit 1; }

directory='' task=programs image=yes documentation=yes maintainer=() homepage=() profile=new
while [ $# -gt 0 ]; do
  case $1 in
    --artifacts) task=artifacts ;;
    --check) task=check ;;
    --no-image) image='' ;;
    --no-documentation) documentation='' ;;
    --no-profile) profile='' ;;
    --maintainer | --homepage | --profile)
      [ -n "${2:-}" ] || { say "$1 needs a value"; usage; }
      case $1 in
        --maintainer) maintainer=(--maintainer "$2") ;;
        --homepage) homepage=(--homepage "$2") ;;
        --profile)
          [ -r "$2" ] || fail "there is no profile $2"
          profile=$(readlink -f "$2")
          ;;
      esac
      shift
      ;;
    -*) usage ;;
    *) [ -z "$directory" ] || usage; directory=$1 ;;
  esac
  shift
done
if [ "$task" = check ]; then [ -z "$directory" ] || usage; else [ -n "$directory" ] || usage; fi
if [ -n "$directory" ]; then directory=$(mkdir -p "$directory" && cd "$directory" && pwd); fi
cd "$(dirname "$0")/.."
# The time of all files in the artifacts is the commit's.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s); fi
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

# A separate folder, since a plain build has other options and would rebuild everything. The programs contain no path of this machine. Each module contains
# a hash of its code before optimisation, paths included, for reuse in incremental builds. With that reuse disabled, the hash is the same on every machine.
#
# The linker optimises all modules as one (LTO), and frame pointers are omitted. With that, a message from one MQTT publisher to one subscriber takes 13 %
# fewer instructions. A profile saves another 15 %, and half the time, since frequently used code is placed together: see Performance.md.
source=$PWD
options=(
  -c release -debug-info-format none --scratch-path .build/ship -Xswiftc -static-stdlib
  --experimental-lto-mode=full --omit-frame-pointers
  -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
  -Xswiftc -file-prefix-map -Xswiftc "$source=/sluice" -Xcc "-ffile-prefix-map=$source=/sluice" -Xcxx "-ffile-prefix-map=$source=/sluice"
)

# The compiler merges functions in the order of their addresses in its memory, which are random without this.
settled=(setarch -R)
"${settled[@]}" true 2>/dev/null || { settled=(); say "addresses can't be fixed here (setarch -R): another build may have other bytes"; }

# Sets `profile` to a file whose name changes with its contents, since swift build only compares the options.
settleProfile() {
  local given=$profile content
  [ -n "$profile" ] || return 0
  mkdir -p .build/profiles
  if [ "$profile" = new ]; then
    given=.build/profiles/new
    scripts/release/profile.sh "$given" || fail "no profile could be made (--no-profile does without)"
  fi
  content=$(mktemp .build/profiles/XXXXXX)
  case $given in *.gz) gzip -dc "$given" >"$content" ;; *) cp "$given" "$content" ;; esac
  profile=$source/.build/profiles/$(sha256sum <"$content" | cut -c1-16).profdata
  mv "$content" "$profile"
  options+=(-Xswiftc -Xfrontend -Xswiftc "-ir-profile-use=$profile")
}

build() { # DIRECTORY
  local program built
  settleProfile
  for program in sluiced sluice; do
    "${settled[@]}" swift build "${options[@]}" ${SLUICE_JOBS:+-j "$SLUICE_JOBS"} --product "$program" \
      -Xlinker "-Map=$source/.build/$program.map" </dev/null >&2
  done
  built=$(swift build "${options[@]}" --show-bin-path)
  for program in sluiced sluice; do
    strip -o "$1/$program" "$built/$program"
    chmod 755 "$1/$program"
  done
}

# --- What users download

artifacts() { # DIRECTORY
  local work version architecture name
  # With several compilers at a time, a few modules come out in one of two ways, with some instructions in another order. One after the other, they are
  # always the same. The modules share the imported C modules, which are built for the first module that needs them.
  SLUICE_JOBS=${SLUICE_JOBS:-1}
  work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-release.XXXXXX")
  # shellcheck disable=SC2064 # the folder as it is now
  trap "rm -rf '$work'" EXIT
  mkdir "$work/programs"
  build "$work/programs"
  version=$("$work/programs/sluiced" --version </dev/null)
  version=${version#sluiced }
  architecture=$(uname -m)
  name=sluice-$version-linux-$architecture

  # The files that install.sh installs, below usr/local and etc.
  mkdir -p "$work/$name"
  scripts/install.sh --destdir "$work/$name" --no-user --programs "$work/programs"
  cp LICENSE README.md CHANGELOG.md "$work/$name/"
  pack "$work" "$name" >"$1/$name.tar.gz"
  if [ -n "$documentation" ]; then
    scripts/docs.sh --output "$work/sluice-$version-documentation" >&2
    pack "$work" "sluice-$version-documentation" >"$1/sluice-$version-documentation.tar.gz"
  fi

  if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
    scripts/package-deb.sh --programs "$work/programs" --output "$1" "${maintainer[@]}" "${homepage[@]}" >/dev/null
  else
    say "no Debian package: dpkg-dev isn't installed"
  fi
  if [ -n "$profile" ]; then gzip -9n <"$profile" >"$1/$name.profdata.gz"; fi
  python3 scripts/release/linked.py "$work/programs" "$source/.build" "$version" "${homepage[1]:-}" >"$1/$name.cdx.json"
  if [ -n "$image" ]; then makeImage "$work" "$1/$name.image.tar.gz" "$version"; fi
  scripts/release/notes.sh "$1" "$version" "${homepage[1]:-}" >"$work/notes"
  mv "$work/notes" "$1/RELEASE-NOTES.md"
  (cd "$1" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
}

# An archive with the commit's time and without owners.
pack() { # WORK FOLDER
  tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu --directory "$1" "$2" | gzip -9n
}

makeImage() { # WORK FILE VERSION
  if ! docker info >/dev/null 2>&1; then
    say "no image: no docker answers"
    return
  fi
  Docker/assemble.sh "$1/programs" "$1/image"
  # The last part of Docker/Dockerfile. Its files were made above, not in a container as in the first part.
  sed -n '/^FROM \${RUNTIME_IMAGE}/,$p' Docker/Dockerfile |
    sed 's/^FROM .*/FROM scratch/; s|--from=build \(.*\)/image/|\1/|' >"$1/Dockerfile"
  docker build --quiet --tag "sluice:$3" --file "$1/Dockerfile" "$1/image" >/dev/null
  docker save "sluice:$3" | gzip -9n >"$2"
}

# --- Twice the same

check() {
  local work copy left
  # An image contains the times at which docker made it.
  left=(--no-image)
  [ -n "$documentation" ] || left+=(--no-documentation)
  work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-reproduce.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  settleProfile
  if [ -n "$profile" ]; then left+=(--profile "$profile"); else left+=(--no-profile); fi
  for copy in one another/folder; do
    mkdir -p "$work/$copy"
    git ls-files -z --cached --others --exclude-standard | xargs -0 tar --create --ignore-failed-read 2>/dev/null |
      tar --extract --directory "$work/$copy"
    say "building in $work/$copy"
    "$work/$copy/scripts/release.sh" --artifacts "$work/made/$copy" "${left[@]}" "${maintainer[@]}" "${homepage[@]}"
    rm -rf "${work:?}/$copy/.build"
  done
  if ! diff -r "$work/made/one" "$work/made/another/folder" >&2; then fail "the two builds differ"; fi
  cat "$work/made/one/SHA256SUMS"
  say "the two builds are the same"
}

case $task in
  programs) build "$directory" ;;
  artifacts) artifacts "$directory"; cat "$directory/SHA256SUMS" ;;
  check) check ;;
esac
