#!/bin/sh
# Puts the contents of an image into a folder. In system: the programs, the libraries that they are linked with, the authorities that are
# trusted in TLS, and all licenses. In records: the folder that becomes a volume, which belongs to the broker's user.
#
#   Docker/assemble.sh PROGRAMS FOLDER
set -eu

if [ $# -ne 2 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
programs=$1 image=$2/system

mkdir -p "$image/usr/bin" "$image/usr/share/doc/sluice" "$image/etc/sluice" "$image/var/lib" "$2/records/sluice"
for program in sluiced sluice; do install -m 755 "$programs/$program" "$image/usr/bin/$program"; done
cp LICENSE README.md "$image/usr/share/doc/sluice/"
chmod 700 "$2/records/sluice"

# A container is reachable by other machines, and has a volume. The operator decides about users and permissions.
configuration=$image/etc/sluice/sluiced.toml
sed 's|^listen = .*|listen = ["0.0.0.0:7420"]|; s|^admin = .*|admin = "0.0.0.0:7421"|; s|^# data = .*|data = "/var/lib/sluice"|' \
  Docker/sluiced.toml >"$configuration"
if [ "$(grep -c -x -e 'listen = \["0.0.0.0:7420"\]' -e 'admin = "0.0.0.0:7421"' -e 'data = "/var/lib/sluice"' "$configuration")" -ne 3 ]; then
  echo "assemble: Docker/sluiced.toml doesn't say where it listens and what data would be" >&2
  exit 1
fi

# Everything is below /usr, and /lib leads there, as in Debian itself.
libraries=$(ldd "$programs/sluiced" "$programs/sluice" | sed -n 's/^\t.* => \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' | sort -u)
if ldd "$programs/sluiced" "$programs/sluice" | grep 'not found' >&2; then
  echo "assemble: install these libraries, which the programs need" >&2
  exit 1
fi
for library in $libraries; do
  case $library in
    /lib*)
      top=${library#/}
      top=${top%%/*}
      [ -e "$image/$top" ] || ln -s "usr/$top" "$image/$top"
      library=/usr$library
      ;;
  esac
  mkdir -p "$image${library%/*}"
  cp -L "$library" "$image$library"
  # Its authors and license.
  file=$(readlink -f "$library")
  package=$(dpkg-query -S "$file" "${file#/usr}" 2>/dev/null | sed -n '1s/:.*//p')
  if [ -n "$package" ] && [ -r "/usr/share/doc/$package/copyright" ]; then
    mkdir -p "$image/usr/share/doc/$package"
    cp -L "/usr/share/doc/$package/copyright" "$image/usr/share/doc/$package/"
  fi
done

authorities=/etc/ssl/certs/ca-certificates.crt
if [ -r "$authorities" ]; then
  mkdir -p "$image/etc/ssl/certs" "$image/usr/lib/ssl"
  cp -L "$authorities" "$image$authorities"
  ln -s "$authorities" "$image/usr/lib/ssl/cert.pem"
fi
