/// What a driver needs to know of a run.
struct LoadTarget {
  /// Where the server listens, on 127.0.0.1.
  var port: UInt16
  /// Where the subscribers connect, in turns; empty: where the publishers do.
  var subscriberPorts: [UInt16] = []
  /// The name of the only topic, or what the names of several begin with.
  var topic: String
  /// Publishers take turns among so many topics. Subscribers need 1.
  var topics = 1
  /// Whether topics are on disk and records are confirmed when they are, where the server has the choice.
  var isDurable = false
  /// On how many servers a record is stored, where the publisher has the choice.
  var replicas = 1
  /// For servers that know users.
  var login: (user: String, password: String)?
  /// Payload bytes of each record.
  var size: Int
  /// Of so many bytes are the records that fill a payload, each with a number of its own, as a broker's commit has them. Nil: payloads are filled with letters,
  /// and large ones compress to almost nothing.
  var contained: Int?
  /// The most records that one `encode` is asked for.
  var batch: Int
  /// How many subscribers are connected: servers that say so with every publish are held to it.
  var subscribers: Int
  /// The bytes of records that a server with a log must be able to keep; nil: all that is published.
  var retainedBytes: Int?
  /// SO_RCVBUF of each connection, for every server alike; nil leaves it to the kernel.
  var receiveBuffer: Int?
  /// Records that a subscriber asks for ahead, where the server has such a thing as demand; nil: unlimited.
  var demand: Int?
  /// Whether what is published is to be acknowledged, where the server can do without.
  var isAcknowledged = true

  /// The name of a publisher's topic.
  func name(of publisher: Int) -> String {
    topics == 1 ? topic : "\(topic)-\(publisher % topics)"
  }

  /// The same, for the subscriber of a number.
  func target(ofSubscriber number: Int) -> LoadTarget {
    guard !subscriberPorts.isEmpty else { return self }
    var target = self
    target.port = subscriberPorts[number % subscriberPorts.count]
    return target
  }
}

/// How one kind of server is loaded: opening connections, and the codecs that speak on them afterwards.
///
/// Opening blocks, and happens before the clock starts. The codecs are values that see bytes and never a socket.
protocol LoadDriver {
  associatedtype Publisher: PublisherCodec
  associatedtype Subscriber: SubscriberCodec

  /// Whether a subscriber that comes late can be given the records from the first on.
  static var keepsRecords: Bool { get }

  var target: LoadTarget { get }
  init(target: LoadTarget)

  /// Creates the topic, and removes what an earlier run left of it.
  func prepare() throws
  /// Connects publisher number `index`.
  func openPublisher(_ index: Int) throws -> Opened<Publisher>
  /// Connects a subscriber that gets every record from the first in the topic on, or, where the server keeps none, every one
  /// published after this returns.
  func openSubscriber() throws -> Opened<Subscriber>
  /// Removes the topic.
  func cleanUp() throws
}

extension LoadDriver {
  static var keepsRecords: Bool { false }
  func prepare() throws {}
  func cleanUp() throws {}
}

/// A connection past its handshake.
struct Opened<Codec> {
  let socket: Socket
  let codec: Codec
  /// What arrived behind the handshake.
  let leftover: [UInt8]

  init(_ handshake: Handshake, _ codec: Codec) {
    socket = handshake.socket
    leftover = handshake.leftover
    self.codec = codec
  }
}

/// The publisher's half of a protocol.
protocol PublisherCodec {
  /// Records that the server has confirmed so far; nil where the protocol has no confirmations.
  var acknowledged: UInt64? { get }
  /// How many records in all the server has allowed so far.
  var granted: UInt64 { get }
  /// Bytes that must be sent before the next batch.
  var replies: Replies { get set }

  /// Encodes records `first ..< first + count` of one publisher. The bytes are valid until the next call.
  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer

  /// Takes in what the server sent; returns how many bytes were used. The rest comes again, with more behind it.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int
}

extension PublisherCodec {
  var acknowledged: UInt64? { nil }
  var granted: UInt64 { .max }
}

/// A publisher's half that sends its batches as the template makes them.
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

  /// Takes in what the server sent, hands every record to `sink` in place, and returns how many bytes were used. The
  /// rest, never more than one record or one control frame, comes again, with more behind it.
  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int
}

/// Where records go: at each call a payload of the run's size, readable only during the call.
protocol RecordSink {
  mutating func record(_ payload: UnsafeRawPointer)
}
