#!/bin/sh
# Makes certificates to try TLS: an authority, a certificate for a server, and one for a client. Not for production, where the
# authority's key must be kept apart from the others.
#
#   scripts/certs.sh DIR [NAME]...     in DIR: authority.pem, server.pem, client.pem, and the keys: authority.key, server.key, client.key
#
# The server's certificate is for localhost, 127.0.0.1, ::1 and each NAME, which is a host's name or address. An existing
# authority is kept and signs again. That renews certificates, and clients and servers that trust the authority need no change.
#
#   SLUICE_CERTS_CLIENT=NAME    the name in the client's certificate; default: client
#   SLUICE_CERTS_DAYS=N         how many days they are valid; default: 365
#   SLUICE_CERTS_NODES='N...'   instead of the two, certificates for nodes of a cluster, N.pem and N.key: for servers and clients, under the name N, and
#                               for localhost, 127.0.0.1, ::1 and each NAME. Use a separate DIR: this authority must only sign nodes' certificates
set -eu
umask 077

case ${1:-} in
'' | -*)
  sed -n 's/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
directory=$1
shift
client=${SLUICE_CERTS_CLIENT:-client}
days=${SLUICE_CERTS_DAYS:-365}
mkdir -p "$directory"

# A name in the form that a certificate needs.
alternative() {
  case $1 in
  *:* | *[0-9].*[0-9].*[0-9].*[0-9])
    case $1 in
    *[!0-9a-fA-F.:]*) echo "DNS:$1" ;;
    *) echo "IP:$1" ;;
    esac
    ;;
  *) echo "DNS:$1" ;;
  esac
}

nodes=${SLUICE_CERTS_NODES:-}
for node in $nodes; do
  case $node in
  authority | *[!A-Za-z0-9._-]*)
    echo "certs: '$node' is no node's name" >&2
    exit 2
    ;;
  esac
done

names=DNS:localhost,IP:127.0.0.1,IP:::1
for name in "$@"; do
  case $name in
  '' | *[!A-Za-z0-9.:*_-]*)
    echo "certs: '$name' is no host's name or address" >&2
    exit 2
    ;;
  esac
  names=$names,$(alternative "$name")
done
case $client in
'' | *[!A-Za-z0-9.@_-]*)
  echo "certs: '$client' is no client's name" >&2
  exit 2
  ;;
esac

work=$(mktemp -d "$directory/.certs.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Runs openssl, and prints its output only if it fails.
quietly() {
  openssl "$@" >"$work/said" 2>&1 || {
    cat "$work/said" >&2
    exit 1
  }
}

key() {
  quietly genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

if [ ! -f "$directory/authority.key" ] || [ ! -f "$directory/authority.pem" ]; then
  key "$work/authority.key"
  quietly req -x509 -new -key "$work/authority.key" -days 3650 -subj "/CN=Sluice test authority" \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign \
    -out "$work/authority.pem"
  mv "$work/authority.key" "$work/authority.pem" "$directory/"
fi

# FILE, subject, alternative names, usage
certificate() {
  key "$work/$1.key"
  quietly req -new -key "$work/$1.key" -subj "/CN=$2" -out "$work/$1.csr"
  cat >"$work/extensions" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=$4
subjectAltName=$3
END
  quietly x509 -req -in "$work/$1.csr" -CA "$directory/authority.pem" -CAkey "$directory/authority.key" \
    -set_serial "0x$(openssl rand -hex 16 | sed 's/^./1/')" -days "$days" -sha256 -extfile "$work/extensions" \
    -out "$work/$1.pem"
  mv "$work/$1.key" "$work/$1.pem" "$directory/"
}

if [ -n "$nodes" ]; then
  for node in $nodes; do certificate "$node" "$node" "DNS:$node,$names" serverAuth,clientAuth; done
  echo "certs: authority.pem and, for nodes, $nodes, each .pem with its .key, are in $directory"
  exit
fi
certificate server "${1:-localhost}" "$names" serverAuth
case $client in
*@*) certificate client "$client" "email:$client" clientAuth ;;
*) certificate client "$client" "DNS:$client" clientAuth ;;
esac
echo "certs: authority.pem, server.pem and client.pem, each with its .key, are in $directory"
