#!/usr/bin/env bash
# Docker/compose.yaml unchanged: the broker becomes healthy, then producer and consumer start. Also checks the properties that
# the image promises.
. "$(dirname "$0")/common.sh"

say "an image without configuration doesn't serve clients from elsewhere"
code=0
docker run --rm --label "sluice=$PROJECT" "$SLUICE_IMAGE" >"$WORK/open" 2>"$WORK/open.err" </dev/null || code=$?
check "it ends with 2" [ "$code" = 2 ]
check "it says what to do, in a line" grep -q 'users FILE.*allow-unauthenticated' "$WORK/open.err"
check "and nothing else" [ "$(cat "$WORK/open" "$WORK/open.err" | wc -l)" = 1 ]

say "broker, producer and consumer"
compose up -d
check "the broker is healthy when the others have started" is_healthy
docker cp "$(broker):/usr/share/doc/sluice/README.md" "$WORK/README.md"
awk 'NR <= 20 { print NR - 1 " " $0 }' "$WORK/README.md" >"$WORK/wanted"
consumer=$(container consumer)
received() { docker logs "$consumer" >"$WORK/consumer" 2>/dev/null && head -n 20 "$WORK/consumer" | cmp -s - "$WORK/wanted"; }
eventually "the consumer prints what the producer reads" received
check "the consumer prints what the producer reads, from the beginning" received

say "what the broker runs as"
check "no root" [ "$(docker inspect -f '{{.Config.User}}' "$(broker)")" = 7420:7420 ]
check "nothing to write but its volume" [ "$(docker inspect -f '{{.HostConfig.ReadonlyRootfs}}' "$(broker)")" = true ]
compose stop broker
check "it stops in good order" [ "$(docker inspect -f '{{.State.ExitCode}}' "$(broker)")" = 0 ]
check "within its time" grep -q '"\?stopped' <(docker logs "$(broker)" 2>&1 | tail -n 1)
