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

  /// In the order of the topics' names, so that what is done to all of them happens in the same order each time.
  var all: [Entry] { entries.values.sorted { NameSpan.precedes($0.topic.name, $1.topic.name) } }

  /// Returns the topic's builder, which is made if there is none.
  mutating func builder(of topic: any DurableTopic) -> TopicCommitBuilder {
    if let known = entries[ObjectIdentifier(topic)] { return known.builder }
    let builder = TopicCommitBuilder(topic, store)
    entries[ObjectIdentifier(topic)] = (topic, builder)
    return builder
  }

  /// Whether that is the topic's builder, and not one of a former life of it.
  func has(_ builder: TopicCommitBuilder, of topic: any DurableTopic) -> Bool {
    entries[ObjectIdentifier(topic)]?.builder === builder
  }

  mutating func remove(_ topic: any DurableTopic) { entries[ObjectIdentifier(topic)] = nil }

  /// The topics that have records to be dropped, though nothing else of them is to be stored, in the order of their names.
  func outdated(wallClock: Int64) -> [any DurableTopic] {
    entries.values.lazy.filter { $0.builder.isOutdated($0.topic, wallClock: wallClock) }.map(\.topic)
      .sorted { NameSpan.precedes($0.name, $1.name) }
  }

  mutating func removeAll() { entries = [:] }
}
