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
        "Those of them that come from one address; of IPv6, from one /64. Unix sockets don't count."),
      .count(
        "max-connections-per-identity", \.connectionsPerIdentity, "connectionsPerIdentity",
        "Those of one identity, where clients have to authenticate."),
      .count(
        "identity-publish-records", \.identityPublishRecords, "identityPublishRecords",
        "Records a second that one identity, or a connection without, may publish; 0 for any number."),
      .size("identity-publish-bytes", \.identityPublishBytes, "identityPublishBytes", "The same in bytes."),
      .count(
        "identity-delivery-records", \.identityDeliveryRecords, "identityDeliveryRecords",
        "Records a second that are sent to one identity, or a connection without; 0 for any number."),
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
        "Topics that one connection has made and that are still there."),
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
        "Records that a group may have under way before they are acknowledged."),
      .count("max-patterns", \.patterns, "patterns", "Subscriptions to patterns at a time."),
      .count(
        "max-patterns-per-connection", \.patternsPerConnection, "patternsPerConnection",
        "Subscriptions to patterns at a time on one connection."),
      .count(
        "max-matches", \.matches, "matches",
        "Topics that a connection's patterns may match, counted for each of them."),
      .count(
        "producer-window", \.producerWindow, "producerWindow",
        "Records that a producer may send ahead of what the broker has taken in."),
      .size(
        "producer-window-bytes", \.producerWindowBytes, "producerWindowBytes",
        "The same in bytes; less when memory gets short."),
      .count(
        "max-producers", \.producers, "producers",
        "Producers that a topic remembers, so that what they send again is published once."),
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
        "The silence after which a peer is given up; 0 for never. A client may ask for less.",
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
        "handshake", \.broker.limits.handshake, "How long a new connection may take to introduce itself."),
      .count(
        "max-authentications", \.authentications, "authentications",
        "Clients that wait at a time for their credentials to be looked at."),
      .count(
        "max-authentications-per-address", \.authenticationsPerAddress, "authenticationsPerAddress",
        "Those of them that come from one address."),
      .count(
        "attempts-free", \.broker.limits.attempts.free, in: 0...1_000_000,
        "Wrong passwords and tokens from one address, or one /64, that cost it nothing."),
      .duration(
        "attempts-delay", \.broker.limits.attempts.first, in: attemptTimes,
        "How long the next attempt from there has to wait; each that is wrong doubles it. 0s for never."),
      .duration(
        "attempts-ceiling", \.broker.limits.attempts.ceiling, in: attemptTimes,
        "The longest that an attempt has to wait."),
      .duration(
        "attempts-memory", \.broker.limits.attempts.memory, path: "limits.attempts.memory",
        in: .milliseconds(1) ... .seconds(30 * 86_400),
        "How long it takes to forget one that was wrong; no less than the longest that one has to wait."),
      .count(
        "attempts-tracked", \.broker.limits.attempts.capacity, in: 1...10_000_000,
        "Addresses whose attempts are remembered; others share one memory."),
      .duration(
        "attempts-shared-ceiling", \.broker.limits.attempts.sharedCeiling, in: attemptTimes,
        "The longest that an attempt of one of those others has to wait."),
      Setting(
        "memory", "SIZE", \.memory, path: "limits.memory",
        "The memory for records and connections, in bytes or of what there is, at which producers wait; 0 for any.",
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
        "How long a connection may have nothing open and ask for nothing; 0s for ever."),
      .duration(
        "write-timeout", \.broker.limits.write,
        "How long a client may read nothing of what is sent to it; 0s for ever."),
      .duration(
        "tcp-keepalive", \.broker.limits.tcpKeepalive, in: SocketNetwork.keepalives,
        "The silence after which the system asks a client's whether it is still there, by TCP; without an answer for as long again the client is gone. 0s for never."
      ),
      .size(
        "max-buffered", \.buffered, "buffered",
        "Bytes that wait in all connections together; beyond it those with the most are closed."),
      .size(
        "max-positions-bytes", \.bufferedPerConnection, "bufferedPerConnection",
        "Bytes of places that a connection may send along with subscriptions to patterns."),
      .size(
        "write-batch", \.writeBatch, "writeBatch",
        "Bytes written to one connection before another connection has its turn."),
      .size(
        "answers", \.answers, "answers",
        "Bytes of answers that may wait for a client to read them, before nothing more is read from it."),
      .size(
        "pooled-memory", \.pooledMemory, "pooledMemory",
        "Freed memory of topics that is kept for new records."),
      .size(
        "storage-backlog", \.storageBacklog, "storageBacklog",
        "Records of durable topics that may wait for the disk before their producers get no more demand; at most a quarter of --storage-limit."
      ),
      .size(
        "storage-backlog-per-topic", \.topicBacklog, "topicBacklog",
        "The same for one topic; at most an eighth."),
      .size(
        "catch-up-memory", \.catchUpMemory, "catchUpMemory",
        "Stored records in memory for subscribers that catch up, beyond which those that ask for nothing give up theirs."
      ),
      .duration(
        "drain", \.broker.drainTime,
        "How long an orderly stop waits for subscribers to take what they were granted."),
    ] + mqttLimits() + adminLimits()
  }

  private static var attemptTimes: ClosedRange<Duration> { .zero ... .seconds(86_400) }
}
