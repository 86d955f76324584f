# shellcheck shell=bash
#
# The steps that the scenarios of a cluster share. They run in the containers of Docker/cluster.yaml. With SLUICE_SCENARIO_ON=processes, as in
# scripts/cluster-scenarios.sh, they run with the processes of scripts/cluster.sh. The steps are the same: see cluster-containers.sh and cluster-processes.sh.

SCENARIO_FOLDER=$(dirname "${BASH_SOURCE[0]}")
case ${SLUICE_SCENARIO_ON:-containers} in
containers)
  # shellcheck source=scripts/integration/cluster-containers.sh
  . "$SCENARIO_FOLDER/cluster-containers.sh"
  ;;
processes)
  # shellcheck source=scripts/integration/cluster-processes.sh
  . "$SCENARIO_FOLDER/cluster-processes.sh"
  ;;
*)
  echo "SLUICE_SCENARIO_ON is '$SLUICE_SCENARIO_ON': it is containers or processes" >&2
  exit 2
  ;;
esac

NODES=(b1 b2 b3)
# Longer than a node's lease, in seconds.
# shellcheck disable=SC2034 # for scenarios
BEYOND_LEASE=4
TOPIC=orders
# The shard of this topic among the 64 shards of a cluster. It depends only on the topic's name.
SHARD=17

# The name of the node that owns the topic.
owner() { client observer cluster shards --json </dev/null | sed -n "/\"shard\":$SHARD,/s/.*\"owner\":\"\([^\"]*\)\".*/\1/p"; }
# FORMER: whether all other nodes know another owner of the topic.
has_moved_from() {
  local now node others=()
  for node in "${NODES[@]}"; do
    if [ "$node" != "$1" ]; then others+=("$node"); fi
  done
  now=$(SERVER=$(servers "${others[@]}") owner)
  [ -n "$now" ] && [ "$now" != "$1" ]
}

# LINES: starts a producer, a subscriber and a member of a group that acknowledges each record, on different nodes. The producer publishes the numbers up
# to LINES.
start_load() {
  LINES_PUBLISHED=$1
  create "$TOPIC" --storage durable --sync always
  SERVER=$(servers b2 b3 b1) background reader sub "$TOPIC" --reconnect
  SERVER=$(servers b3 b1 b2) background worker sub "$TOPIC" --group workers --ack explicit --reconnect
  seq "$LINES_PUBLISHED" | client writer pub "$TOPIC" --ack durable --reconnect --rate 500 --complete --quiet \
    >"$WORK/writer" 2>"$WORK/writer.err" &
  WRITER=$!
  goes_on
}

# Waits until subscribers have got at least 400 more records than now, or all.
goes_on() {
  local lines
  lines=$(($(wc -l <"$WORK/reader") + 400))
  if [ "$lines" -gt "$LINES_PUBLISHED" ]; then lines=$LINES_PUBLISHED; fi
  eventually "records arrive" has_lines "$WORK/reader" "$lines"
}

finish_load() {
  check "the producer has had everything acknowledged" wait "$WRITER"
  check "the subscriber ends with the topic" ended reader
  check "it has every line, in order and once" is_sequence "$WORK/reader" 1 "$LINES_PUBLISHED"
  check "the member of the group ends with it, too" ended worker
  check "and has every line" has_all "$WORK/worker" 1 "$LINES_PUBLISHED"
  client late sub "$TOPIC" </dev/null >"$WORK/late"
  check "so has a late subscriber" is_sequence "$WORK/late" 1 "$LINES_PUBLISHED"
}
