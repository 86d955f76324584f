import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

extension DaemonSettings {
  /// Limits on the work that clients can cause.
  static func limits() -> [Setting] {
    [
      .count("max-connections", \.connections, "connections", "Connections at a time."),
      .count(
        "max-connections-per-address", \.connectionsPerAddress, "connectionsPerAddress",
        "Connections at a time from one address, or from one /64 of IPv6. Unix sockets don't count."),
      .count(
        "max-connections-per-identity", \.connectionsPerIdentity, "connectionsPerIdentity",
        "Connections at a time of one identity, if clients authenticate."),
      .count(
        "identity-publish-records", \.identityPublishRecords, "identityPublishRecords",
        "Records per second that one identity, or a connection without one, may publish; 0 for no limit."),
      .size("identity-publish-bytes", \.identityPublishBytes, "identityPublishBytes", "The same in bytes."),
      .count(
        "identity-delivery-records", \.identityDeliveryRecords, "identityDeliveryRecords",
        "Records per second that are sent to one identity, or to a connection without one; 0 for no limit."),
      .size(
        "identity-delivery-bytes", \.identityDeliveryBytes, "identityDeliveryBytes", "The same in bytes."),
      .size("max-record", \.record, "record", "The longest record: payload, key and headers together."),
      .size("max-frame", \.frame, "frame", "The longest frame; follows --max-record when that needs more."),
      .count(
        "max-streams", \.streams, "streams",
        "Subscriptions, publications and requests at a time on one connection."),
      .count("max-topics", \.topics, "topics", "Topics at a time."),
      .count(
        "max-topics-per-connection", \.topicsPerConnection, "topicsPerConnection",
        "Existing topics that one connection has created."),
      .count("max-subscriptions", \.subscriptions, "subscriptions", "Subscriptions at a time, in all."),
      .count(
        "max-subscriptions-per-connection", \.subscriptionsPerConnection, "subscriptionsPerConnection",
        "Subscriptions at a time on one connection."),
      .count("max-publications", \.publications, "publications", "Publications at a time, in all."),
      .count(
        "max-publications-per-connection", \.publicationsPerConnection, "publicationsPerConnection",
        "Publications at a time on one connection."),
      .count("max-cursors", \.cursors, "cursors", "Durable cursors and groups that a topic has at a time."),
      .count(
        "group-records", \.groupRecords, "groupRecords",
        "Unacknowledged records that a group may have."),
      .count("max-patterns", \.patterns, "patterns", "Subscriptions to patterns at a time."),
      .count(
        "max-patterns-per-connection", \.patternsPerConnection, "patternsPerConnection",
        "Subscriptions to patterns at a time on one connection."),
      .count(
        "max-matches", \.matches, "matches",
        "Topics that a connection's patterns may match, counted for each pattern."),
      .count(
        "producer-window", \.producerWindow, "producerWindow",
        "Records that a producer may send before the broker has processed them."),
      .size(
        "producer-window-bytes", \.producerWindowBytes, "producerWindowBytes",
        "The same in bytes; less when memory gets short."),
      .count(
        "max-producers", \.producers, "producers",
        "Producers that a topic remembers, so that records they send again are published once."),
      .duration(
        "producer-memory", \.broker.limits.producerMemory,
        "How long a topic remembers a producer that has left."),
      .duration(
        "auto-delete-time", \.broker.limits.autoDeleteTime,
        "How long a topic with auto-delete stays without an attached client."),
      .duration(
        "cursor-memory", \.broker.limits.cursorMemory,
        "How long a topic remembers a durable cursor that no subscriber uses."),
      Setting(
        "keepalive", "TIME", \.broker.limits.keepalive, path: "limits.keepalive",
        "The silence after which a connection is closed; 0 for never. A client may request a shorter time.",
        read: { text throws(ValueError) in
          guard let time = UInt32(exactly: try TimeSpan.milliseconds(text)) else {
            throw ValueError("'\(text)' is too long; 49 days is the most")
          }
          return time
        },
        write: { TimeSpan.exact(.milliseconds(Int64($0))) }),
      .duration(
        "route-wait", \.broker.limits.routeWait,
        "How long a client waits for a topic that no node of the cluster serves at the moment."),
      .duration(
        "handshake", \.broker.limits.handshake, "How long a new connection may take for its handshake."),
      .count(
        "max-authentications", \.authentications, "authentications",
        "Clients at a time whose credentials wait to be checked."),
      .count(
        "max-authentications-per-address", \.authenticationsPerAddress, "authenticationsPerAddress",
        "The same from one address."),
      .count(
        "attempts-free", \.broker.limits.attempts.free, in: 0...1_000_000,
        "Failed logins from one address, or one /64, that cause no delay."),
      .duration(
        "attempts-delay", \.broker.limits.attempts.first, in: attemptTimes,
        "The delay of the next login from there; each failed login doubles it. 0s for no delay."),
      .duration(
        "attempts-ceiling", \.broker.limits.attempts.ceiling, in: attemptTimes,
        "The longest delay of a login."),
      .duration(
        "attempts-memory", \.broker.limits.attempts.memory, path: "limits.attempts.memory",
        in: .milliseconds(1) ... .seconds(30 * 86_400),
        "How long a failed login counts; at least the longest delay."),
      .count(
        "attempts-tracked", \.broker.limits.attempts.capacity, in: 1...10_000_000,
        "Addresses whose failed logins are counted; other addresses share one count."),
      .duration(
        "attempts-shared-ceiling", \.broker.limits.attempts.sharedCeiling, in: attemptTimes,
        "The longest delay of a login from one of those other addresses."),
      Setting(
        "memory", "SIZE", \.memory, path: "limits.memory",
        "The memory for records and connections, in bytes or in percent of the available memory. At this amount producers are blocked; 0 for no limit.",
        read: MemorySetting.parse, write: { $0.text }),
      .size(
        "max-memory-per-identity", \.memoryPerIdentity, "memoryPerIdentity",
        "The part of --memory for topics, cursors, groups, producers and subscriptions of one identity; 0 for an eighth of --memory."
      ),
      .size(
        "max-memory-per-address", \.memoryPerAddress, "memoryPerAddress",
        "The same for clients without an identity from one address, or one /64; 0 for a quarter of --memory."),
      .duration(
        "idle-timeout", \.broker.limits.idle,
        "How long a connection may stay without streams and requests; 0s for no limit."),
      .duration(
        "write-timeout", \.broker.limits.write,
        "How long a client may leave sent data unread; 0s for no limit."),
      .duration(
        "tcp-keepalive", \.broker.limits.tcpKeepalive, in: SocketNetwork.keepalives,
        "The silence after which the system probes a client over TCP; without an answer for as long again, the connection is closed. 0s for never."
      ),
      .size(
        "max-buffered", \.buffered, "buffered",
        "Bytes that are buffered in all connections together; beyond it, those with the most are closed."),
      .size(
        "max-positions-bytes", \.bufferedPerConnection, "bufferedPerConnection",
        "Bytes of positions that a connection may send with its subscriptions to patterns."),
      .size(
        "write-batch", \.writeBatch, "writeBatch",
        "Bytes written to one connection before another connection has its turn."),
      .size(
        "answers", \.answers, "answers",
        "Bytes of unread answers at which the broker stops reading from a client."),
      .size(
        "pooled-memory", \.pooledMemory, "pooledMemory",
        "Freed memory of topics that is kept for new records."),
      .size(
        "storage-backlog", \.storageBacklog, "storageBacklog",
        "Records of durable topics that may wait for the disk before their producers are blocked; at most a quarter of --storage-limit."
      ),
      .size(
        "storage-backlog-per-topic", \.topicBacklog, "topicBacklog",
        "The same for one topic; at most an eighth."),
      .size(
        "catch-up-memory", \.catchUpMemory, "catchUpMemory",
        "Stored records in memory for subscribers that catch up; beyond it, subscribers without demand release theirs."
      ),
      .duration(
        "drain", \.broker.drainTime,
        "How long an orderly stop waits for subscribers to receive the records they requested."),
    ] + mqttLimits() + adminLimits()
  }

  private static var attemptTimes: ClosedRange<Duration> { .zero ... .seconds(86_400) }
}
