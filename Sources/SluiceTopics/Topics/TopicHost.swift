import SluiceWire

/// The topics' interface to the broker. Both functions are called from any loop.
package struct TopicHost: Sendable {
  /// An event of a topic that no client has caused.
  package enum Event: Sendable {
    /// A group's dead letters have made the topic.
    case created(topic: String)
    /// The topic has failed because it had no producer for too long.
    case producerLost(topic: String)
    /// A group's dead-letter topic refuses records.
    case deadLettersWait(topic: String, group: String, deadLetters: String, WireError)
  }

  /// Whether the broker serves; while it stops, no topic fails and no dead letters are appended.
  package var isServing: @Sendable () -> Bool = { true }
  package var report: @Sendable (Event) -> Void = { _ in }

  package init() {}
}
