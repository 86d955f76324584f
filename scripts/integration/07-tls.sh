#!/usr/bin/env bash
# TLS between containers, with users: only a client that trusts the authority and knows the password is served.
. "$(dirname "$0")/common.sh"

certificates=$WORK/certificates
"$TOP/scripts/certs.sh" "$certificates" broker >/dev/null 2>&1
"$TOP/scripts/certs.sh" "$WORK/others" broker >/dev/null 2>&1
echo "a secret of twenty-one" >"$certificates/password"
docker run --interactive --rm --label "sluice=$PROJECT" --entrypoint sluice --volume "$certificates:/certificates" --user 0:0 "$SLUICE_IMAGE" \
  user add alice --file /certificates/users --password-file /certificates/password </dev/null
echo 'alice publish,subscribe,create orders.>' >"$certificates/permissions"
echo 'alice subscribe >' >>"$certificates/permissions"
cp "$WORK/others/authority.pem" "$certificates/other-authority.pem"
# Must be readable for the broker's user, which is another one. The files are for this test only.
chmod 755 "$WORK" "$certificates"
chmod 644 "$certificates"/*
settings <<END
services:
  broker:
    environment:
      SLUICED_ALLOW_UNAUTHENTICATED: "false"
      SLUICED_LISTEN: tls://0.0.0.0:7420
      SLUICED_TLS_CERT: /certificates/server.pem
      SLUICED_TLS_KEY: /certificates/server.key
      SLUICED_USERS: /certificates/users
      SLUICED_PERMISSIONS: /certificates/permissions
    volumes:
      - $certificates:/certificates:ro
END

start_broker
SERVER=tls://broker:7420
OPTIONS=(--volume "$certificates:/certificates:ro" --env SLUICE_TLS_CA=/certificates/authority.pem)
alice=(--user alice --password-file /certificates/password)
say "10,000 lines are published and read through TLS"
seq 10000 | client writer "${alice[@]}" pub orders.eu --quiet
client reader "${alice[@]}" sub orders.eu --until-live </dev/null >"$WORK/reader"
check "all of them come" is_sequence "$WORK/reader" 1 10000

refused() { # TEXT ARGUMENT...
  local text=$1 code=0
  shift
  client stranger "$@" </dev/null >"$WORK/stranger" 2>"$WORK/stranger.err" || code=$?
  [ "$code" = 1 ] && grep -qi "$text" "$WORK/stranger.err"
}
check "a client without credentials is refused" refused 'requires credentials' ping --count 1
check "nor with a wrong password" refused 'password' --user alice --password-file /certificates/authority.pem ping --count 1
check "nor may alice do what isn't allowed" refused 'denied\|may not\|not allowed\|permission' "${alice[@]}" pub other hello
check "a client that trusts another authority refuses the broker" refused 'certificate' --tls-ca /certificates/other-authority.pem "${alice[@]}" ping --count 1
SERVER=broker:7420
check "without TLS there is nothing" refused '' ping --count 1

say "the certificate is exchanged"
cp "$WORK/others/server.pem" "$certificates/server.pem"
cat "$WORK/others/server.key" >"$certificates/server.key"
docker kill --signal HUP "$(broker)" >/dev/null
SERVER=tls://broker:7420
exchanged() { client friend --tls-ca /certificates/other-authority.pem "${alice[@]}" ping --count 1 </dev/null; }
eventually "new connections get the new one" exchanged
check "new connections get the new one" eval 'exchanged >/dev/null 2>&1'
