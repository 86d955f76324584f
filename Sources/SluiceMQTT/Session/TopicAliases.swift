import SluiceWire

/// The topic aliases that a client has set for its messages.
struct InboundAliases: Sendable {
  private var topics: [[UInt8]] = []
  private let maximum: UInt16

  var isEmpty: Bool { topics.isEmpty }

  init(maximum: UInt16) {
    self.maximum = maximum
  }

  mutating func set(_ alias: UInt16, _ topic: UnsafeRawBufferPointer) throws(MQTTError) {
    guard alias <= maximum else { throw Self.invalid(alias, "the limit is \(maximum)") }
    while topics.count < Int(alias) { topics.append([]) }
    // A name that is too long for the broker isn't stored, since its messages are refused anyway.
    unsafe topics[Int(alias) - 1] = topic.count <= TopicName.maximumLength ? Array(topic) : []
  }

  func topic(_ alias: UInt16) throws(MQTTError) -> [UInt8] {
    guard alias <= maximum else { throw Self.invalid(alias, "the limit is \(maximum)") }
    guard Int(alias) <= topics.count, !topics[Int(alias) - 1].isEmpty else {
      throw .violation("the topic alias \(alias) stands for no topic on this connection")
    }
    return topics[Int(alias) - 1]
  }

  private static func invalid(_ alias: UInt16, _ why: String) -> MQTTError {
    MQTTError(.topicAliasInvalid, "the topic alias is \(alias); \(why)")
  }
}

/// The topic aliases that a session sets for its client: for the first topics whose messages it delivers.
struct OutboundAliases: Sendable {
  private(set) var topics: [UInt32] = []
  let maximum: UInt16

  init(maximum: UInt16) {
    self.maximum = maximum
  }

  /// The alias of a topic, and whether the client knows it; nil for none.
  func alias(of topic: UInt32) -> (alias: UInt16, isKnown: Bool)? {
    for index in topics.indices where topics[index] == topic { return (UInt16(index + 1), true) }
    return topics.count < Int(maximum) ? (UInt16(topics.count + 1), false) : nil
  }

  /// Notes that a message with a new alias for the topic was sent.
  mutating func add(_ topic: UInt32) { topics.append(topic) }
}
