import SluiceWire

/// A session without a connection, in the form in which a roster keeps it in memory: it refers to topics by their numbers in ``MQTTSharedTopics``.
///
/// ```
///  topics     count, then the session's number of each and that of ``MQTTSharedTopics``
///  positions  count, then for each subscription its number and a count, then topics and offsets
///  session    ``MQTTKeptSession/encoded``, without either
/// ```
///
/// Integers have 7 bits in a byte. With positions in 10 topics and one subscription it takes about 160 bytes.
struct MQTTPackedSession {
  let bytes: [UInt8]

  /// Adds the session's topics to the shared ones.
  init(_ session: MQTTKeptSession, _ shared: inout MQTTSharedTopics) {
    var rest = session
    (rest.topics, rest.positions) = ([:], [:])
    var writer = ByteWriter()
    writer.compact(UInt64(session.topics.count))
    for (number, topic) in session.topics {
      writer.compact(UInt64(number))
      writer.compact(UInt64(shared.add(topic)))
    }
    writer.compact(UInt64(session.positions.count))
    for (number, place) in session.positions {
      writer.compact(UInt64(number))
      writer.compact(UInt64(place.offsets.count))
      for (topic, offset) in place.offsets {
        writer.compact(UInt64(topic))
        writer.compact(offset)
      }
    }
    // In one piece, without a writer's spare capacity.
    bytes = writer.bytes + rest.encoded
  }

  init(packed bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Returns the session; nil for damaged bytes.
  func session(_ shared: MQTTSharedTopics) -> MQTTKeptSession? {
    try? unsafe bytes.withUnsafeBytes { bytes throws(WireError) in
      var reader = unsafe ByteReader(bytes)
      var topics: [UInt32: MQTTKnownTopic] = [:]
      try Self.readTopics(&reader) { number, place in topics[number] = shared[place] }
      var positions: [UInt16: MQTTPositions] = [:]
      for _ in 0..<(try reader.compact("subscriptions")) {
        let number = UInt16(truncatingIfNeeded: try reader.compact("subscription"))
        var place = MQTTPositions()
        for _ in 0..<(try reader.compact("places")) {
          let topic = UInt32(truncatingIfNeeded: try reader.compact("topic"))
          place.offsets[topic] = try reader.compact("offset")
        }
        positions[number] = place
      }
      var session = unsafe try MQTTKeptSession(decoding: Array(reader.remaining))
      (session.topics, session.positions) = (topics, positions)
      return session
    }
  }

  /// Removes the session's topics from the shared ones.
  func release(from shared: inout MQTTSharedTopics) {
    try? unsafe bytes.withUnsafeBytes { bytes throws(WireError) in
      var reader = unsafe ByteReader(bytes)
      try Self.readTopics(&reader) { _, place in shared.remove(place) }
    }
  }

  private static func readTopics(
    _ reader: inout ByteReader, _ body: (UInt32, UInt32) -> Void
  ) throws(WireError) {
    for _ in 0..<(try reader.compact("topics")) {
      let number = UInt32(truncatingIfNeeded: try reader.compact("topic"))
      body(number, UInt32(truncatingIfNeeded: try reader.compact("shared topic")))
    }
  }
}

/// The topics in which sessions without a connection have positions, each stored once.
struct MQTTSharedTopics {
  private var numbers: [MQTTKnownTopic: UInt32] = [:]
  private var topics: [(topic: MQTTKnownTopic, uses: Int)?] = []
  private var free: [UInt32] = []

  var count: Int { numbers.count }

  subscript(number: UInt32) -> MQTTKnownTopic? {
    Int(number) < topics.count ? topics[Int(number)]?.topic : nil
  }

  /// Counts another session with a position in the topic. Returns the topic's number.
  mutating func add(_ topic: MQTTKnownTopic) -> UInt32 {
    if let number = numbers[topic] {
      topics[Int(number)]?.uses += 1
      return number
    }
    let number: UInt32
    if let former = free.popLast() {
      number = former
    } else {
      number = UInt32(topics.count)
      topics.append(nil)
    }
    topics[Int(number)] = (topic, 1)
    numbers[topic] = number
    return number
  }

  /// A session with a position in the topic has ended, or has a connection again.
  mutating func remove(_ number: UInt32) {
    guard Int(number) < topics.count, let (topic, uses) = topics[Int(number)] else { return }
    guard uses == 1 else {
      topics[Int(number)]?.uses = uses - 1
      return
    }
    topics[Int(number)] = nil
    numbers[topic] = nil
    free.append(number)
  }
}
