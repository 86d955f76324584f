import SluiceWire

/// What topics ask of the broker, and tell it. Both are called from any loop.
package struct TopicHost: Sendable {
  /// What happens to topics without a client.
  package enum Event: Sendable {
    /// A group's dead letters have made the topic.
    case created(topic: String)
    /// The topic has failed because it had no producer for too long.
    case producerLost(topic: String)
    /// The topic of a group's dead letters takes none.
    case deadLettersWait(topic: String, group: String, deadLetters: String, WireError)
  }

  /// Whether the broker serves; one that stops lets no topic fail and appends no dead letters any more.
  package var isServing: @Sendable () -> Bool = { true }
  package var report: @Sendable (Event) -> Void = { _ in }

  package init() {}
}
