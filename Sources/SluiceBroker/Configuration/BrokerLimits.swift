import SluiceAccess
import SluiceWire

/// Bounds on what peers can make the broker do.
public struct BrokerLimits: Sendable {
  /// Connections at a time. Default: 16,384.
  public var connections = 16_384

  /// Those of them that come from one address; of IPv6, from one /64. Unix sockets, which have permissions, don't count. Default: 4,096.
  public var connectionsPerAddress = 4_096

  /// Those of one identity, where clients are asked who they are. Default: 1,024.
  public var connectionsPerIdentity = 1_024

  /// What one identity may publish in a second, on all its connections together; without identities, what one connection may. It is granted no
  /// more, and nothing is dropped. A quarter of a second's worth may be saved up. 0 for any amount. Default: 0.
  public var identityPublishRecords = 0
  public var identityPublishBytes = 0

  /// The same for what it is sent of subscriptions. What a turn sends beyond it is made up for by waiting. Default: 0.
  public var identityDeliveryRecords = 0
  public var identityDeliveryBytes = 0

  /// The longest record, in bytes of its body (payload, key and headers). 1 to 256 MiB. Default: 1 MiB.
  public var record = 1 << 20

  /// The longest frame, in bytes of its body; at least ``record`` + 1 KiB. Default: 2 MiB.
  public var frame = 2 << 20

  /// Streams (subscriptions, publications and requests) at a time on one connection. Default: 8,192.
  public var streams: UInt32 = 8_192

  /// Topics at a time. Default: 100,000.
  public var topics = 100_000

  /// Topics that one connection has made and that are still there. Default: 50,000.
  public var topicsPerConnection = 50_000

  /// Subscriptions at a time, those to patterns and members of groups among them, of all connections together. Default: 1,000,000.
  public var subscriptions = 1_000_000

  /// The same on one connection. Default: 8,192.
  public var subscriptionsPerConnection = 8_192

  /// Publications at a time, of all connections together. Default: 100,000.
  public var publications = 100_000

  /// The same on one connection. Default: 8,192.
  public var publicationsPerConnection = 8_192

  /// Subscriptions to patterns at a time. Default: 100,000.
  public var patterns = 100_000

  /// Subscriptions to patterns at a time on one connection. Default: 4,096.
  public var patternsPerConnection = 4_096

  /// Topics at a time that a connection's subscriptions to patterns may match, counted for each of them. Each takes some 600 bytes.
  /// Default: 1,000,000.
  public var matches = 1_000_000

  /// How many records a producer may send ahead of the broker's grant. 2 to 2^32. Default: 65,536.
  public var producerWindow: UInt64 = 65_536

  /// The same in bytes; the last record may go beyond it. Near the ceiling of ``memory`` it is less. At least 64 KiB. Default: 16 MiB.
  public var producerWindowBytes = 16 << 20

  /// Producers that a topic remembers, so that what they send again after a lost connection is in its log once. Those that are
  /// attached are among them. Default: 10,000.
  public var producers = 10_000

  /// How long a topic remembers a producer that isn't attached any more. Default: 24 hours.
  public var producerMemory: Duration = .seconds(86_400)

  /// After which time without anybody attached a topic with ``TopicSettings/autoDelete`` is deleted. Default: 10 s.
  public var autoDeleteTime: Duration = .seconds(10)

  /// Durable cursors and groups that a topic has at a time, together; beyond it no new one is made. Default: 10,000.
  public var cursors = 10_000

  /// How long a topic remembers a durable cursor that nobody uses. Default: 7 days.
  public var cursorMemory: Duration = .seconds(7 * 86_400)

  /// Records that a group with explicit acknowledgement may have under way at a time: with its members, waiting to be given out again,
  /// or behind another one with their key. What comes after them waits in the topic. Default: 65,536.
  public var groupRecords = 65_536

  /// The silence after which a peer is given up, in milliseconds; 0 for never; a client may ask for less. Default: 30 s.
  public var keepalive: UInt32 = 30_000

  /// How long a connection may take for its handshake, from the first byte until the client is known. Default: 10 s.
  public var handshake: Duration = .seconds(10)

  /// Clients that wait at a time for their credentials to be verified, and new credentials of connections; beyond it they are told
  /// to try again later. Default: 1,024.
  public var authentications = 1_024

  /// The same for those of one address. Default: 64.
  public var authenticationsPerAddress = 64

  /// How those are slowed down who prove to be somebody, and can't.
  public var attempts = AttemptLimiter.Settings()

  /// How long a connection may be open with nothing open on it, and nothing asked for, before it is closed; zero for ever. A connection
  /// that rests costs about a kilobyte, and one whose client is gone is found out by ``keepalive``. Default: zero.
  public var idle: Duration = .zero

  /// How long a client may leave unread what was written for it, nothing of it taken, before it is given up, whatever it sends; zero for
  /// ever. A subscriber that asks for nothing isn't written to. Default: 60 s.
  public var write: Duration = .seconds(60)

  /// Bytes that are gathered for one connection before it is another one's turn; what a connection that doesn't read can hold
  /// back of the log's memory. A socket that is filled in one go moves half as much again as one that is filled in four. Default: 1 MiB.
  public var writeBatch = 1 << 20

  /// Answers that wait for a client to read them, in bytes; beyond it nothing more is read from that client. Default: 256 KiB.
  public var answers = 256 << 10

  /// Bytes of places with which a connection's subscriptions to patterns go on, until they have come whole. Default: 64 MiB.
  public var bufferedPerConnection = 64 << 20

  /// Bytes that wait in all connections together: frames that have come in part, answers that aren't read, records that had to be copied for
  /// clients that don't read them. Beyond it the connections that have the most are closed, one by one. Default: 1 GiB.
  public var buffered = 1 << 30

  /// Bytes of records, in topics and on their way, and of all that waits in connections, at which producers get no more demand for topics in memory, until
  /// there is a tenth less. Beyond an eighth more nothing is read from those who publish. Zero for no ceiling. Default: zero; `sluiced` takes
  /// three quarters of what the system has.
  public var memory = 0

  /// Memory of retired segments that is kept for new ones, in bytes. Default: 64 MiB.
  public var pooledMemory = 64 << 20

  /// Bytes of one durable topic's records that may wait to be written; its producers are asked for no more then. Where the store has a limit, no more
  /// than an eighth of that. Default: 16 MiB.
  public var topicBacklog = 16 << 20

  /// The same for all durable topics together, and no more than a quarter of the store's limit. Default: 256 MiB.
  public var storageBacklog = 256 << 20

  /// Bytes of stored records in memory for subscribers that catch up, beyond which those that ask for nothing give up theirs. Default: 256 MiB.
  public var catchUpMemory = 256 << 20

  public init() {}

  /// Connections besides ``connections`` that may be about to close, or to be told that they are too many; others are reset at once.
  public static let closingConnections = 256
}

extension BrokerLimits {
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
    try check(bufferedPerConnection >= 4096, "limits.bufferedPerConnection: must be at least 4096 bytes")
    try check(buffered >= 1 << 20, "limits.buffered: must be at least 1048576 bytes")
    try check(
      memory == 0 || (1 << 20...1 << 50).contains(memory),
      "limits.memory: \(memory) isn't 0, for none, or in 1048576...1125899906842624")
    try check(writeBatch >= 4096, "limits.writeBatch: must be at least 4096 bytes")
    try check(answers >= 4096, "limits.answers: must be at least 4096 bytes")
  }
}
