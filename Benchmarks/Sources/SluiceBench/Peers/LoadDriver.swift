/// The target of a run, for a driver.
struct LoadTarget {
  /// The server's port on 127.0.0.1.
  var port: UInt16
  /// The ports to which subscribers connect in turn; empty for the publishers' port.
  var subscriberPorts: [UInt16] = []
  /// The name of the only topic, or the common prefix of several topics.
  var topic: String
  /// The number of topics that publishers use in turn. Subscribers need 1.
  var topics = 1
  /// Whether topics are on disk, and records are confirmed when they are, if the server has the choice.
  var isDurable = false
  /// The number of servers that store a record, if the publisher has the choice.
  var replicas = 1
  /// For servers with users.
  var login: (user: String, password: String)?
  /// Payload bytes of each record.
  var size: Int
  /// The size of records that fill a payload, each with its own number, as in a broker's commit. Nil to fill payloads with letters, so that large ones
  /// compress to almost nothing.
  var contained: Int?
  /// The most records for one `encode`.
  var batch: Int
  /// The number of connected subscribers. It is checked for servers that report it with every publish.
  var subscribers: Int
  /// The bytes of records that a server with a log must be able to keep; nil for all published records.
  var retainedBytes: Int?
  /// SO_RCVBUF of each connection, for every server; nil for the kernel's default.
  var receiveBuffer: Int?
  /// The number of records that a subscriber requests ahead, if the server has demand; nil for unlimited.
  var demand: Int?
  /// Whether published records are to be acknowledged, if the server has the choice.
  var isAcknowledged = true

  /// The name of a publisher's topic.
  func name(of publisher: Int) -> String {
    topics == 1 ? topic : "\(topic)-\(publisher % topics)"
  }

  /// The target for the subscriber with that number.
  func target(ofSubscriber number: Int) -> LoadTarget {
    guard !subscriberPorts.isEmpty else { return self }
    var target = self
    target.port = subscriberPorts[number % subscriberPorts.count]
    return target
  }
}

/// The driver of one kind of server: opens connections, and provides the codecs for them.
///
/// Opening blocks, and happens before the measured time. The codecs are values that process bytes and never use a socket.
protocol LoadDriver {
  associatedtype Publisher: PublisherCodec
  associatedtype Subscriber: SubscriberCodec

  /// Whether a late subscriber can get the records from the first one on.
  static var keepsRecords: Bool { get }

  var target: LoadTarget { get }
  init(target: LoadTarget)

  /// Creates the topic, and removes what an earlier run has left.
  func prepare() throws
  /// Connects publisher number `index`.
  func openPublisher(_ index: Int) throws -> Opened<Publisher>
  /// Connects a subscriber that gets every record of the topic from the first one on or, if the server keeps none, every record published after this returns.
  func openSubscriber() throws -> Opened<Subscriber>
  /// Removes the topic.
  func cleanUp() throws
}

extension LoadDriver {
  static var keepsRecords: Bool { false }
  func prepare() throws {}
  func cleanUp() throws {}
}

/// A connection after its handshake.
struct Opened<Codec> {
  let socket: Socket
  let codec: Codec
  /// The bytes that arrived after the handshake.
  let leftover: [UInt8]

  init(_ handshake: Handshake, _ codec: Codec) {
    socket = handshake.socket
    leftover = handshake.leftover
    self.codec = codec
  }
}

/// The publisher's half of a protocol.
protocol PublisherCodec {
  /// Records that the server has confirmed so far; nil if the protocol has no confirmations.
  var acknowledged: UInt64? { get }
  /// The total number of records that the server has allowed so far.
  var granted: UInt64 { get }
  /// Bytes that must be sent before the next batch.
  var replies: Replies { get set }

  /// Encodes records `first ..< first + count` of one publisher. The bytes are valid until the next call.
  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer

  /// Processes bytes of the server. Returns how many were used. The rest is passed again, with more bytes after it.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int
}

extension PublisherCodec {
  var acknowledged: UInt64? { nil }
  var granted: UInt64 { .max }
}

/// The publisher's half of a protocol whose batches are those of a template.
protocol TemplateCodec: PublisherCodec {
  var template: BatchTemplate { get }
}

extension TemplateCodec {
  func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    template.fill(first: first, count: count, stamp: stamp)
  }
}

/// The subscriber's half of a protocol.
protocol SubscriberCodec {
  /// Bytes that must be sent soon: credit, answers to pings.
  var replies: Replies { get set }

  /// Processes bytes of the server, passes every record to `sink` in place, and returns how many bytes were used. The rest, at most one record or one
  /// control frame, is passed again, with more bytes after it.
  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int
}

/// A sink for records. Each call passes a payload of the run's size, valid only during the call.
protocol RecordSink {
  mutating func record(_ payload: UnsafeRawPointer)
}
