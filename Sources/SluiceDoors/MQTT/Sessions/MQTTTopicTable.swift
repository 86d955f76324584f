/// The topics that places of a session name by numbers. A topic has the same number for as long as the session lasts.
struct MQTTTopicTable {
  private var topics: [UInt32: MQTTKnownTopic]
  private var numbers: [MQTTKnownTopic: UInt32] = [:]
  private var last: UInt32 = 0

  /// - Parameter kept: those of earlier connections.
  init(_ kept: [UInt32: MQTTKnownTopic] = [:]) {
    topics = kept
    for (number, topic) in kept {
      numbers[topic] = number
      last = max(last, number)
    }
  }

  subscript(number: UInt32) -> MQTTKnownTopic? { topics[number] }

  /// The number of a topic, which gets one if it has none.
  mutating func number(of topic: MQTTKnownTopic) -> UInt32 {
    if let number = numbers[topic] { return number }
    last += 1
    numbers[topic] = last
    topics[last] = topic
    return last
  }

  /// What is kept of it: the topics that are in use.
  func topics(_ used: Set<UInt32>) -> [UInt32: MQTTKnownTopic] { topics.filter { used.contains($0.key) } }
}
