#!/bin/sh
# Makes the secrets with which the containers of a cluster authenticate, to try it: certificates of three authorities, and the password of the engine's user.
# Not for production, where the authorities' keys must be kept apart from the others.
#
#   scripts/cluster-secrets.sh [DIR]               for Docker/cluster.yaml; DIR is Docker/secrets by default
#   scripts/cluster-secrets.sh --kubernetes DIR    for packaging/kubernetes/cluster.yaml: prints the Secrets, for kubectl apply -f -
#
# There are three authorities: for the servers of the engine, for the nodes, and for clients. DIR/client contains the authority that clients trust, and two
# credentials of the client 'admin', which has all permissions: a certificate, and a token for the nodes' pages and for HTTP. DIR/node/permissions contains the
# permissions of clients. For another client, SLUICE_CERTS_CLIENT=NAME scripts/certs.sh DIR/authorities/clients makes a certificate, and
# sluice token make --key DIR/authorities/tokens.key --key-id tokens --subject NAME a token.
#
# Authorities, the tokens' key, the password and the permissions are kept if they exist. All other files are replaced, which renews the certificates. Only this
# user can enter DIR. Each container gets only its own files. Unless root runs this, all users can read those files, since containers have other users.
#
#   SLUICE_SECRETS_NODES=N         how many nodes; default: 3
#   SLUICE_SECRETS_NAMES='NAME...' more names and addresses by which clients reach the nodes, besides localhost, 127.0.0.1, ::1 and the nodes' own
#   SLUICE_CERTS_DAYS=N            how many days certificates and the token are valid; default: 365
set -eu
umask 077

fail() {
  echo "cluster-secrets: $*" >&2
  exit 2
}

kind=compose
case ${1:-} in
--kubernetes)
  kind=kubernetes
  shift
  [ $# -eq 1 ] || fail "--kubernetes needs one DIR, where the authorities stay"
  ;;
-*)
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
[ $# -le 1 ] || fail "there is one DIR"
count=${SLUICE_SECRETS_NODES:-3}
case $count in
[1-9] | [1-9][0-9]) ;;
*) fail "SLUICE_SECRETS_NODES is '$count', which isn't a number from 1 to 99" ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../Docker/secrets}

# The names in certificates, by which the owners are reached. The first part of each is the name of the certificate's folder or file.
engines="engine-0.engine engine-1.engine engine-2.engine"
nodes='' extra=${SLUICE_SECRETS_NAMES:-}
if [ "$kind" = kubernetes ]; then
  for number in $(seq 0 $((count - 1))); do nodes="$nodes sluice-$number.sluice-nodes"; done
  extra="sluice $extra"
else
  for number in $(seq "$count"); do nodes="$nodes b$number"; done
fi

mkdir -p "$folder"
chmod 700 "$folder"
folder=$(cd "$folder" && pwd)
authorities=$folder/authorities
SLUICE_CERTS_NODES=$engines "$here/certs.sh" "$authorities/engine" >/dev/null
# shellcheck disable=SC2086 # a word each
SLUICE_CERTS_NODES=$nodes "$here/certs.sh" "$authorities/nodes" $extra >/dev/null
SLUICE_CERTS_CLIENT="admin" "$here/certs.sh" "$authorities/clients" >/dev/null
# certs.sh also makes a certificate for a server, which isn't needed.
rm -f "$authorities/clients/server.pem" "$authorities/clients/server.key"

# The token, a JWT that its key signs with EdDSA.
if [ ! -s "$authorities/tokens.key" ]; then openssl genpkey -algorithm ED25519 -out "$authorities/tokens.key"; fi
encoded() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
token() { # SUBJECT
  now=$(date +%s)
  work=$(mktemp -d "$folder/.token.XXXXXX")
  {
    printf '{"alg":"EdDSA","typ":"JWT","kid":"tokens"}' | encoded
    printf .
    printf '{"sub":"%s","iat":%s,"exp":%s}' "$1" "$now" "$((now + ${SLUICE_CERTS_DAYS:-365} * 86400))" | encoded
  } >"$work/claims"
  openssl pkeyutl -sign -rawin -inkey "$authorities/tokens.key" -in "$work/claims" -out "$work/signature" || fail "openssl signs no token; it has to be 3.0 or later"
  echo "$(cat "$work/claims").$(encoded <"$work/signature")"
  rm -r "$work"
}

# The files that all servers of the engine share, all nodes, and all clients.
mkdir -p "$folder/engine" "$folder/node/keys" "$folder/client"
[ -s "$folder/node/engine-password" ] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/node/engine-password"
[ -s "$folder/node/permissions" ] || echo 'admin all >' >"$folder/node/permissions"
echo "ENGINE_PASSWORD: \"$(cat "$folder/node/engine-password")\"" >"$folder/engine/password.conf"
put() { # FILE FILE
  cp "$1" "$2.new"
  mv "$2.new" "$2"
}
put "$authorities/engine/authority.pem" "$folder/engine/authority.pem"
put "$authorities/engine/authority.pem" "$folder/node/engine-ca.pem"
put "$authorities/nodes/authority.pem" "$folder/node/peer-ca.pem"
put "$authorities/clients/authority.pem" "$folder/node/client-ca.pem"
put "$authorities/nodes/authority.pem" "$folder/client/authority.pem"
put "$authorities/clients/client.pem" "$folder/client/client.pem"
put "$authorities/clients/client.key" "$folder/client/client.key"
openssl pkey -in "$authorities/tokens.key" -pubout -out "$folder/node/keys/tokens.pem"
token admin >"$folder/client/token"

if [ "$kind" = compose ]; then
  own() { # AUTHORITY NAME...
    authority=$1
    shift
    for name in "$@"; do
      mkdir -p "$folder/${name%%.*}"
      put "$authorities/$authority/$name.pem" "$folder/${name%%.*}/certificate.pem"
      put "$authorities/$authority/$name.key" "$folder/${name%%.*}/certificate.key"
    done
  }
  # shellcheck disable=SC2086 # a word each
  own engine $engines
  # shellcheck disable=SC2086
  own nodes $nodes
  cd "$folder"
  # The engine's containers run as root without the right to read other users' files, the brokers' as 7420.
  # shellcheck disable=SC2086
  if [ "$(id -u)" -eq 0 ]; then
    chown -R 7420:7420 node client $nodes
  else
    chmod -R a+rX engine engine-? node client $nodes
  fi
  echo "cluster-secrets: what Docker/cluster.yaml needs is in $folder"
  exit
fi

# A Secret: each further argument is KEY=FILE.
secret() { # NAME KEY=FILE...
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\nstringData:\n' "$1"
  shift
  for entry in "$@"; do
    printf '  %s: |\n' "${entry%%=*}"
    awk '{ print "    " $0 }' "${entry#*=}"
  done
}
# The arguments of `secret` for each name: POD.pem and POD.key.
pairs() { # AUTHORITY NAME...
  authority=$1
  shift
  for name in "$@"; do echo "${name%%.*}.pem=$authorities/$authority/$name.pem" "${name%%.*}.key=$authorities/$authority/$name.key"; done
}
case $folder in *[[:space:]]*) fail "'$folder' has a space in it" ;; esac
# shellcheck disable=SC2046,SC2086 # a word each
{
  secret engine "authority.pem=$folder/engine/authority.pem" "password.conf=$folder/engine/password.conf"
  secret engine-certificates $(pairs engine $engines)
  secret sluice "engine-ca.pem=$folder/node/engine-ca.pem" "peer-ca.pem=$folder/node/peer-ca.pem" "client-ca.pem=$folder/node/client-ca.pem" \
    "engine-password=$folder/node/engine-password" "permissions=$folder/node/permissions" "tokens.pem=$folder/node/keys/tokens.pem"
  secret sluice-certificates $(pairs nodes $nodes)
  secret sluice-client "authority.pem=$folder/client/authority.pem" "client.pem=$folder/client/client.pem" "client.key=$folder/client/client.key" \
    "token=$folder/client/token"
}
