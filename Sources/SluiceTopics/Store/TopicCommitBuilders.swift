import SluiceStore
import SluiceWire

/// The builders of the topics' commits: one for each topic that has had a commit, or was restored from the store, until its deletion is stored.
struct TopicCommitBuilders {
  typealias Entry = (topic: any DurableTopic, builder: TopicCommitBuilder)

  private let store: any ShardStore
  private var entries: [ObjectIdentifier: Entry] = [:]

  init(_ store: any ShardStore) {
    self.store = store
  }

  /// In the order of the topics' names, so that an operation on all topics has the same order each time.
  var all: [Entry] { entries.values.sorted { NameSpan.precedes($0.topic.name, $1.topic.name) } }

  /// Returns the topic's builder, and creates it if there is none.
  mutating func builder(of topic: any DurableTopic) -> TopicCommitBuilder {
    if let known = entries[ObjectIdentifier(topic)] { return known.builder }
    let builder = TopicCommitBuilder(topic, store)
    entries[ObjectIdentifier(topic)] = (topic, builder)
    return builder
  }

  /// Whether that is the topic's present builder, not that of a deleted topic with the same name.
  func has(_ builder: TopicCommitBuilder, of topic: any DurableTopic) -> Bool {
    entries[ObjectIdentifier(topic)]?.builder === builder
  }

  mutating func remove(_ topic: any DurableTopic) { entries[ObjectIdentifier(topic)] = nil }

  /// The topics with records to be dropped, even if they have no other changes, in the order of their names.
  func outdated(wallClock: Int64) -> [any DurableTopic] {
    entries.values.lazy.filter { $0.builder.isOutdated($0.topic, wallClock: wallClock) }.map(\.topic)
      .sorted { NameSpan.precedes($0.name, $1.name) }
  }

  mutating func removeAll() { entries = [:] }
}
