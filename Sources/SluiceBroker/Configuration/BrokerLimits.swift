import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire

/// Limits on the work that clients can cause and on the data that the broker keeps for them.
public struct BrokerLimits: Sendable {
  /// Connections at the same time. Default: 16,384.
  public var connections = 16_384

  /// Connections from one address; for IPv6, from one /64. Unix sockets, which have permissions, don't count. Default: 4,096.
  public var connectionsPerAddress = 4_096

  /// Connections of one identity, where clients authenticate. Default: 1,024.
  public var connectionsPerIdentity = 1_024

  /// Records and bytes per second that one identity may publish on all its connections together; without identities, one connection. Grants stay
  /// within the rate, and nothing is dropped. A burst may use a quarter of a second's worth. 0 for no limit. Default: 0.
  public var identityPublishRecords = 0
  public var identityPublishBytes = 0

  /// The same for records sent to subscriptions. If a turn sends more than the rate allows, the following turns wait. Default: 0.
  public var identityDeliveryRecords = 0
  public var identityDeliveryBytes = 0

  /// The longest record, in bytes of its body (payload, key and headers). 1 to 256 MiB. Default: 1 MiB.
  public var record = 1 << 20

  /// The longest frame, in bytes of its body; at least ``record`` + 1 KiB. Default: 2 MiB.
  public var frame = 2 << 20

  /// Streams (subscriptions, publications and requests) at a time on one connection. Default: 32,768.
  public var streams: UInt32 = 32_768

  /// Topics at a time. Default: 100,000.
  public var topics = 100_000

  /// Existing topics that one connection has made. Default: 50,000.
  public var topicsPerConnection = 50_000

  /// Subscriptions at a time of all connections together, subscriptions to patterns and members of groups included. Default: 1,000,000.
  public var subscriptions = 1_000_000

  /// The same on one connection. Default: 32,768, which is enough for 10,000 filters `a/#` of MQTT: each is two patterns, and has one more stream until its
  /// retained messages are sent.
  public var subscriptionsPerConnection = 32_768

  /// Publications at a time, of all connections together. Default: 100,000.
  public var publications = 100_000

  /// The same on one connection. Default: 8,192.
  public var publicationsPerConnection = 8_192

  /// Subscriptions to patterns at a time. Default: 1,000,000.
  public var patterns = 1_000_000

  /// Subscriptions to patterns at a time on one connection. Default: 20,480.
  public var patternsPerConnection = 20_480

  /// Topics that a connection's subscriptions to patterns may match at a time, counted per subscription. Each takes some 600 bytes.
  /// Default: 1,000,000.
  public var matches = 1_000_000

  /// How many records a producer may send ahead of the broker's grant. 2 to 2^32. Default: 65,536.
  public var producerWindow: UInt64 = 65_536

  /// The same in bytes; the last record may exceed it. It shrinks near the ceiling of ``memory``. At least 64 KiB. Default: 16 MiB.
  public var producerWindowBytes = 16 << 20

  /// Producers that a topic remembers, attached ones included, so that records sent again after a lost connection are in its log once.
  /// Default: 10,000.
  public var producers = 10_000

  /// How long a topic remembers a detached producer. Default: 24 hours.
  public var producerMemory: Duration = .seconds(86_400)

  /// The time without attached streams after which a topic with `TopicSettings.autoDelete` is deleted. Default: 10 s.
  public var autoDeleteTime: Duration = .seconds(10)

  /// Durable cursors and groups of a topic together; beyond it no new one is made. Default: 10,000.
  public var cursors = 10_000

  /// How long a topic remembers an unused durable cursor. Default: 7 days.
  public var cursorMemory: Duration = .seconds(7 * 86_400)

  /// Records that a group with explicit acknowledgement may have under way: with its members, waiting for redelivery, or behind another
  /// record with their key. Later records wait in the topic. Default: 65,536.
  public var groupRecords = 65_536

  /// The silence after which a connection is closed, in milliseconds; 0 for never; a client may request less. Default: 30 s.
  public var keepalive: UInt32 = 30_000

  /// How long a connection's handshake may take, from the first byte to the end of authentication. Default: 10 s.
  public var handshake: Duration = .seconds(10)

  /// How long a stream or request may wait while no node serves its topic, or while the topic's node can't be reached; then it ends with
  /// `ErrorCode.topicMoved`. Only in a cluster. Default: 5 s.
  public var routeWait: Duration = .seconds(5)

  /// Attempts to authenticate or renew credentials that may wait for verification; a client beyond it gets an error and has to try again later.
  /// Default: 1,024.
  public var authentications = 1_024

  /// The same for one address. Default: 64.
  public var authenticationsPerAddress = 64

  /// How failed attempts to authenticate delay later ones.
  public var attempts = AttemptLimiter.Settings()

  /// How long a connection may be without streams and requests before it is closed; zero for no limit. An idle connection costs about a kilobyte, and
  /// ``keepalive`` detects one whose client has disappeared. Default: zero.
  public var idle: Duration = .zero

  /// How long a client may leave all pending output unread before it is disconnected, even if it still sends; zero for no limit. The broker doesn't
  /// write to a subscriber without demand. Default: 60 s.
  public var write: Duration = .seconds(60)

  /// How long an accepted TCP connection may be silent before the operating system probes the client's system; without a reply for as long again, the
  /// connection is lost. For clients of gateways whose protocol has no keepalive of its own. Only on the broker's own sockets; zero for no probes.
  /// Default: 5 min.
  public var tcpKeepalive: Duration = .seconds(300)

  /// Bytes gathered for one connection before the next one is served, and the most memory of the log that a connection can retain by not reading. One
  /// write of 1 MiB achieves 1.5 times the throughput of four of 256 KiB. Default: 1 MiB.
  public var writeBatch = 1 << 20

  /// Answers that a client has yet to read, in bytes; beyond it the broker stops reading from that client. Default: 256 KiB.
  public var answers = 256 << 10

  /// Bytes of incomplete places with which a connection's subscriptions to patterns resume. Default: 64 MiB.
  public var bufferedPerConnection = 64 << 20

  /// Bytes buffered in all connections together: incomplete frames, unread answers, records copied for clients that don't read them, the buffers of
  /// gateways, and frames that wait in links to other nodes. Beyond it the broker closes the connections with the most bytes, one by one; clients of a
  /// closed link open their streams again. Default: 1 GiB.
  public var buffered = 1 << 30

  /// The ceiling of memory in bytes: records in topics and in transit, and connections' buffers. At the ceiling, producers of topics in memory get no
  /// more demand until a tenth is free again. Above nine eighths of it, the broker stops reading from connections with publications. Zero for no
  /// ceiling. Default: zero; `sluiced` takes three quarters of the system's memory.
  public var memory = 0

  /// The bytes that one identity may make the broker keep besides records: topics, groups, durable cursors, producers, subscriptions. Topics and
  /// cursors that outlive their client still count for its identity. 0 for an eighth of ``memory``. Default: 0.
  public var memoryPerIdentity = 0

  /// The same for all connections without an identity from one address; for IPv6, from one /64. Unix sockets together count as one address. 0 for a quarter of
  /// ``memory``. Default: 0.
  public var memoryPerAddress = 0

  /// Bytes of retired segments that are pooled for new ones. Default: 64 MiB.
  public var pooledMemory = 64 << 20

  /// Bytes of one durable topic's records that may wait for the disk; its producers get no more demand then. At most an eighth of the store's limit.
  /// Default: 16 MiB.
  public var topicBacklog = 16 << 20

  /// The same for all durable topics together, at most a quarter of the store's limit. Default: 256 MiB.
  public var storageBacklog = 256 << 20

  /// Bytes of stored records in memory for subscribers that catch up; beyond it subscribers without demand release theirs. Default: 256 MiB.
  public var catchUpMemory = 256 << 20

  public init() {}

  /// Connections beyond ``connections`` that the broker may be closing or rejecting; further ones are reset at once.
  public static let closingConnections = 256
}

extension BrokerLimits {
  /// The memory that the broker keeps for one owner besides records, at most.
  var memoryShares: KeptAccounts.Shares {
    KeptAccounts.Shares(
      identity: memoryPerIdentity > 0 ? memoryPerIdentity : memory / 8,
      address: memoryPerAddress > 0 ? memoryPerAddress : memory / 4)
  }

  /// - Throws: ``ConfigurationError`` that names the first setting out of its range.
  func validate() throws(ConfigurationError) {
    func check(_ holds: Bool, _ message: @autoclosure () -> String) throws(ConfigurationError) {
      if !holds { throw ConfigurationError(description: message()) }
    }
    try check(
      (1...(1 << 24)).contains(connections), "limits.connections: \(connections) isn't in 1...16777216")
    try check(connectionsPerAddress >= 1, "limits.connectionsPerAddress: must be at least 1")
    try check(
      (1...(256 << 20)).contains(record), "limits.record: \(record) isn't in 1...268435456")
    try check(connectionsPerIdentity >= 1, "limits.connectionsPerIdentity: must be at least 1")
    try check(identityPublishRecords >= 0, "limits.identityPublishRecords: must not be negative")
    try check(identityPublishBytes >= 0, "limits.identityPublishBytes: must not be negative")
    try check(identityDeliveryRecords >= 0, "limits.identityDeliveryRecords: must not be negative")
    try check(identityDeliveryBytes >= 0, "limits.identityDeliveryBytes: must not be negative")
    let leastFrame = max(record + 1024, Limits.smallestFrame)
    try check(
      (leastFrame...(512 << 20)).contains(frame),
      "limits.frame: \(frame) isn't in \(leastFrame)...536870912 (the record limit and 1 KiB more, or 64 KiB)"
    )
    try check(
      (1...1_048_576).contains(streams), "limits.streams: \(streams) isn't in 1...1048576")
    try check(topics >= 1, "limits.topics: must be at least 1")
    try check(topicsPerConnection >= 0, "limits.topicsPerConnection: must not be negative")
    try check(subscriptions >= 0, "limits.subscriptions: must not be negative")
    try check(subscriptionsPerConnection >= 0, "limits.subscriptionsPerConnection: must not be negative")
    try check(publications >= 0, "limits.publications: must not be negative")
    try check(publicationsPerConnection >= 0, "limits.publicationsPerConnection: must not be negative")
    try check(patterns >= 0, "limits.patterns: must not be negative")
    try check(patternsPerConnection >= 0, "limits.patternsPerConnection: must not be negative")
    try check(matches >= 0, "limits.matches: must not be negative")
    try check(
      (2...(1 << 32)).contains(producerWindow),
      "limits.producerWindow: \(producerWindow) isn't in 2...4294967296")
    try check(
      (64 << 10...1 << 40).contains(producerWindowBytes),
      "limits.producerWindowBytes: \(producerWindowBytes) isn't in 65536...1099511627776")
    try check(producers >= 1, "limits.producers: must be at least 1")
    try check(authentications >= 1, "limits.authentications: must be at least 1")
    try check(authenticationsPerAddress >= 1, "limits.authenticationsPerAddress: must be at least 1")
    try check(attempts.free >= 0, "limits.attempts.free: must not be negative")
    try check(attempts.capacity >= 1, "limits.attempts.capacity: must be at least 1")
    try check(
      min(attempts.first, attempts.ceiling, attempts.sharedCeiling) >= .zero,
      "limits.attempts: no time may be negative")
    let longest = max(attempts.ceiling, attempts.sharedCeiling)
    try check(
      attempts.memory > .zero && attempts.memory >= longest,
      "limits.attempts.memory: \(attempts.memory) is less than what an attempt may have to wait, \(longest); make it longer, or the ceilings shorter"
    )
    try check(producerMemory >= .zero, "limits.producerMemory: must not be negative")
    try check(autoDeleteTime >= .zero, "limits.autoDeleteTime: must not be negative")
    try check(routeWait >= .zero, "limits.routeWait: must not be negative")
    try check(cursors >= 1, "limits.cursors: must be at least 1")
    try check(cursorMemory >= .zero, "limits.cursorMemory: must not be negative")
    try check(
      (1...(1 << 24)).contains(groupRecords),
      "limits.groupRecords: \(groupRecords) isn't in 1...16777216")
    try check(topicBacklog >= 4096, "limits.topicBacklog: must be at least 4096 bytes")
    try check(storageBacklog >= 4096, "limits.storageBacklog: must be at least 4096 bytes")
    try check(catchUpMemory >= 0, "limits.catchUpMemory: must not be negative")
    try check(idle >= .zero, "limits.idle: must not be negative")
    try check(write >= .zero, "limits.write: must not be negative")
    try check(
      SocketNetwork.keepalives.contains(tcpKeepalive),
      "limits.tcpKeepalive: \(tcpKeepalive) isn't in 0...32767 seconds")
    try check(bufferedPerConnection >= 4096, "limits.bufferedPerConnection: must be at least 4096 bytes")
    try check(buffered >= 1 << 20, "limits.buffered: must be at least 1048576 bytes")
    try check(
      memory == 0 || (1 << 20...1 << 50).contains(memory),
      "limits.memory: \(memory) isn't 0, for none, or in 1048576...1125899906842624")
    try check(memoryPerIdentity >= 0, "limits.memoryPerIdentity: must not be negative")
    try check(memoryPerAddress >= 0, "limits.memoryPerAddress: must not be negative")
    try check(writeBatch >= 4096, "limits.writeBatch: must be at least 4096 bytes")
    try check(answers >= 4096, "limits.answers: must be at least 4096 bytes")
  }
}
