import SluiceWire

/// Numbers for the topics of a session's positions. A topic keeps its number for as long as the session lasts.
struct MQTTTopicTable {
  private var topics = ShortTable<UInt32, MQTTKnownTopic>()
  /// The numbers in a session with many topics; with few, the table is searched.
  private var numbers: [MQTTKnownTopic: UInt32] = [:]
  private var last: UInt32 = 0

  private static let few = 8

  /// - Parameter kept: the topics from earlier connections.
  init(_ kept: [UInt32: MQTTKnownTopic] = [:]) {
    for number in kept.keys.sorted() {
      topics[number] = kept[number]
      last = number
    }
    indexNumbers()
  }

  subscript(number: UInt32) -> MQTTKnownTopic? { topics[number] }

  func pack(into writer: inout PackedWriter) {
    writer.number(last)
    writer.number(topics.count)
    for number in topics.keys {
      guard let topic = topics[number] else { continue }
      writer.number(number)
      writer.text(topic.name)
      writer.number(topic.epoch)
    }
  }

  init(unpacking reader: inout PackedReader) {
    last = reader.number()
    for _ in 0..<reader.number(Int.self) {
      let number: UInt32 = reader.number()
      topics[number] = MQTTKnownTopic(name: reader.text(), epoch: reader.number())
    }
    indexNumbers()
  }

  /// Returns the number of a topic, and assigns one if it has none.
  mutating func number(of topic: MQTTKnownTopic) -> UInt32 {
    if let number = find(topic) { return number }
    last += 1
    topics[last] = topic
    if numbers.isEmpty { indexNumbers() } else { numbers[topic] = last }
    return last
  }

  private func find(_ topic: MQTTKnownTopic) -> UInt32? {
    guard numbers.isEmpty else { return numbers[topic] }
    return topics.keys.first { topics[$0] == topic }
  }

  private mutating func indexNumbers() {
    guard topics.count > Self.few else { return }
    for number in topics.keys { if let topic = topics[number] { numbers[topic] = number } }
  }

  /// Returns the topics in use, which are stored with the session.
  func topics(_ used: Set<UInt32>) -> [UInt32: MQTTKnownTopic] {
    var kept: [UInt32: MQTTKnownTopic] = [:]
    for number in used { kept[number] = topics[number] }
    return kept
  }
}
