import SluiceMQTT
import SluiceWire

/// The positions at which a subscription of a session resumes: after the records that the client has acknowledged in each topic.
struct MQTTPositions: Hashable, Sendable {
  /// The next offset, by the session's number of the topic.
  var offsets: [UInt32: UInt64] = [:]
}

/// A topic that a session's positions refer to.
struct MQTTKnownTopic: Hashable, Sendable {
  /// The broker's name.
  var name: String
  var epoch: UInt64
}

/// A message at QoS 2 in the topic's log.
struct MQTTExactPlace: Hashable, Sendable {
  var topic: String
  /// The producer's sequence in the topic.
  var sequence: UInt64
}

/// The stored form of a session. It contains no messages; those for the client are in the topics' logs.
///
/// Encoded it takes 34 bytes and the session's state, 16 bytes and the name for each topic with a position, 12 for each position, 18 for each unacknowledged
/// message at QoS 2, and the will.
struct MQTTKeptSession: Hashable, Sendable {
  /// Encoded by ``MQTTSession``.
  var state: [UInt8]
  /// The session's producer ID, by which each message at QoS 2 is published exactly once.
  var producer: UInt64
  var topics: [UInt32: MQTTKnownTopic]
  /// By the numbers of subscriptions.
  var positions: [UInt16: MQTTPositions]
  /// Messages at QoS 2 that weren't acknowledged, by the session's sequence.
  var exact: [UInt64: MQTTExactPlace]
  /// How many seconds it is kept without a connection; all ones: without limit.
  var expiry: UInt32
  /// When its connection ended, in milliseconds since 1970; nil while it has one.
  var leftAt: Int64?
  /// The will to publish if the broker ends without having closed the client's connection; nil for none.
  var will: MQTTConnect.Will?

  /// The approximate size when encoded, in bytes.
  var approximateSize: Int {
    let places = positions.values.reduce(0) { $0 + $1.offsets.count }
    return state.count + 40 * topics.count + 16 * places + 20 * exact.count
  }

  /// Returns whether it takes at most this many bytes when encoded. Most calls need no encoding.
  func fits(in bytes: Int) -> Bool {
    let places = positions.values.reduce(0) { $0 + $1.offsets.count }
    let most =
      64 + state.count + Self.longestName * (topics.count + exact.count) + 16 * places
      + (will?.heldBytes ?? 0)
    return most <= bytes || encoded.count <= bytes
  }

  /// Bytes of a topic's name and its other fields.
  private static let longestName = 1_100

  /// When it expires, in milliseconds since 1970; nil for never, or while it has a connection.
  var expires: Int64? {
    guard let leftAt, expiry != .max else { return nil }
    return leftAt + Int64(expiry) * 1000
  }
}

// MARK: - Encoding

extension MQTTKeptSession {
  private static let format: UInt8 = 1
  private static let connected = Int64.min

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.format)
    writer.integer(producer)
    writer.integer(expiry)
    writer.integer(leftAt ?? Self.connected)
    writer.bytes(state)
    writer.integer(UInt16(clamping: topics.count))
    for (number, topic) in topics.prefix(Int(UInt16.max)) {
      writer.integer(number)
      writer.string(topic.name)
      writer.integer(topic.epoch)
    }
    writer.integer(UInt16(positions.count))
    for (number, place) in positions {
      writer.integer(number)
      writer.integer(UInt32(place.offsets.count))
      for (topic, offset) in place.offsets {
        writer.integer(topic)
        writer.integer(offset)
      }
    }
    // Grouped by topic, so that each topic's name is written once.
    let byTopic = Dictionary(grouping: exact) { $0.value.topic }
    writer.integer(UInt16(byTopic.count))
    for (topic, messages) in byTopic {
      writer.string(topic)
      writer.integer(UInt16(messages.count))
      for message in messages {
        writer.integer(message.key)
        writer.integer(message.value.sequence)
      }
    }
    writer.integer(UInt8(will == nil ? 0 : 1))
    if let will {
      writer.string(will.topic)
      writer.integer(will.qos.rawValue | (will.isRetained ? 4 : 0))
      writer.bytes(will.payload)
      writer.bytes(will.properties.bytes)
    }
    // A copy without the writer's spare capacity, since these bytes are most of the memory of a session without a connection.
    return unsafe writer.bytes.withUnsafeBytes { unsafe Array($0) }
  }

  /// - Throws: ``ErrorCode/malformedFrame`` for malformed bytes.
  init(decoding bytes: [UInt8]) throws(WireError) {
    self.init(state: [], producer: 0, topics: [:], positions: [:], exact: [:], expiry: 0)
    try unsafe bytes.withUnsafeBufferPointer { bytes throws(WireError) in
      var reader = unsafe ByteReader(UnsafeRawBufferPointer(bytes))
      try self.read(&reader)
    }
  }

  private mutating func read(_ reader: inout ByteReader) throws(WireError) {
    guard try reader.integer("format", as: UInt8.self) == Self.format else { throw Self.malformed }
    producer = try reader.integer("producer")
    expiry = try reader.integer("expiry")
    let time: Int64 = try reader.integer("time")
    leftAt = time == Self.connected ? nil : time
    state = try reader.sizedBytes("state")
    for _ in 0..<(try reader.integer("topics", as: UInt16.self)) {
      let number: UInt32 = try reader.integer("topic")
      let name = try reader.string("topic name")
      topics[number] = MQTTKnownTopic(name: name, epoch: try reader.integer("epoch"))
    }
    for _ in 0..<(try reader.integer("positions", as: UInt16.self)) {
      let number: UInt16 = try reader.integer("subscription")
      var place = MQTTPositions()
      for _ in 0..<(try reader.integer("places", as: UInt32.self)) {
        let topic: UInt32 = try reader.integer("topic")
        place.offsets[topic] = try reader.integer("offset", as: UInt64.self)
      }
      positions[number] = place
    }
    for _ in 0..<(try reader.integer("exact topics", as: UInt16.self)) {
      let topic = try reader.string("topic name")
      for _ in 0..<(try reader.integer("messages", as: UInt16.self)) {
        let message: UInt64 = try reader.integer("message")
        exact[message] = MQTTExactPlace(topic: topic, sequence: try reader.integer("sequence"))
      }
    }
    guard try reader.integer("will", as: UInt8.self) == 1 else { return }
    let topic = try reader.string("will topic")
    let flags: UInt8 = try reader.integer("will flags")
    guard let qos = MQTTQoS(rawValue: flags & 3) else { throw Self.malformed }
    var will = MQTTConnect.Will(
      topic: topic, payload: try reader.sizedBytes("will payload"), qos: qos, isRetained: flags & 4 != 0)
    guard let properties = MQTTProperties(willBytes: try reader.sizedBytes("will properties")) else {
      throw Self.malformed
    }
    will.properties = properties
    self.will = will
  }

  private static var malformed: WireError {
    WireError(.malformedFrame, "the stored MQTT session can't be read")
  }
}

extension ByteWriter {
  /// A `u32` length and the bytes.
  fileprivate mutating func bytes(_ other: [UInt8]) {
    integer(UInt32(other.count))
    bytes.append(contentsOf: other)
  }
}

extension ByteReader {
  /// A `u32` length and that many bytes.
  fileprivate mutating func sizedBytes(_ what: StaticString) throws(WireError) -> [UInt8] {
    let count = Int(try integer(what, as: UInt32.self))
    return unsafe Array(try bytes(what, count: count))
  }
}
