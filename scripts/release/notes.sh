#!/usr/bin/env bash
# Prints the notes of a release, in Markdown: a link to the documentation, a description of each download, and the changes. scripts/release.sh --artifacts calls it.
#
#   scripts/release/notes.sh DIRECTORY VERSION [HOMEPAGE]     DIRECTORY has the downloads
#
# Fails when a file in DIRECTORY isn't described here, so that each download has a line.
set -euo pipefail
[ $# -ge 2 ] && [ -d "$1" ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
directory=$(cd "$1" && pwd) version=$2 homepage=${3:-}
cd "$(dirname "$0")/../.."

echo "# Sluice $version"
echo
echo "## Documentation"
echo
documentation=$(cd "$directory" && find . -name 'sluice-*-documentation.tar.gz' -printf '%P\n')
if [ -n "$documentation" ]; then
  site=${documentation%.tar.gz}
  cat <<END
\`$documentation\` is the whole site: tutorials, guides, and the reference of every library. Serve its files with any web server, at the root of
an address:

\`\`\`sh
tar -xzf $documentation
python3 -m http.server 8000 --bind 127.0.0.1 --directory $site    # http://127.0.0.1:8000/
\`\`\`

END
fi
echo "In a checkout, \`scripts/docs.sh --serve\` makes and serves the same site. The programs have man pages: \`man sluice\`, \`man sluiced\`, \`man sluiced.toml\`."
[ -z "$homepage" ] || echo "The project's page is <$homepage>."
echo
echo "## Downloads"
echo
while IFS= read -r file; do
  case $file in
    SHA256SUMS | RELEASE-NOTES.md) continue ;;
    *-documentation.tar.gz) what='the documentation as a web site' ;;
    *.image.tar.gz) what="a container image: \`docker load --input $file\`" ;;
    *.tar.gz) what="the programs with man pages, completions and the systemd service, as they go below \`/\`" ;;
    *.deb) what="a Debian package: \`apt install ./$file\`" ;;
    *.profdata.gz) what="what the programs ran how often under load, by which the compiler has laid out their code: with \`scripts/release.sh --artifacts DIR --profile $file\` the same source gives the same programs" ;;
    *.cdx.json) what='what the programs are linked with (CycloneDX)' ;;
    *) echo "notes: $file isn't described in $0" >&2; exit 1 ;;
  esac
  echo "- \`$file\`: $what"
done < <(cd "$directory" && find . -maxdepth 1 -type f -printf '%P\n' | LC_ALL=C sort)
echo "- \`SHA256SUMS\`: compare with \`sha256sum --check SHA256SUMS\`"
echo

# The version's section of the changelog. If it doesn't exist yet, the section of the changes since the last version.
changes=$(awk -v version="$version" '
  /^## / { shown = $2 == version || $2 == "[" version "]"; next }
  shown' CHANGELOG.md)
[ -n "$changes" ] || changes=$(awk '/^## / { shown = $2 == "Unreleased"; next } shown' CHANGELOG.md)
[ -n "$changes" ] || { echo "notes: CHANGELOG.md has neither a section $version nor one of unreleased changes" >&2; exit 1; }
echo "## Changes"
printf '%s\n' "$changes"
