# A server of the engine of Docker/cluster.yaml, of the program that scripts/nats-server.sh installs, for machines that reach no registry:
#
#   scripts/nats-server.sh && docker build -f Docker/engine.Dockerfile -t sluice-engine .build/engine
ARG RUNTIME_IMAGE=scratch
FROM ${RUNTIME_IMAGE}
COPY nats-server-2.15.1 /nats-server
EXPOSE 4222 6222
STOPSIGNAL SIGTERM
ENTRYPOINT ["/nats-server"]
