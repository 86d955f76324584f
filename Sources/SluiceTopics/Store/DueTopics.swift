import SluiceIO

/// The topics with changes to be stored, and when each is due.
struct DueTopics {
  private(set) var entries: [ObjectIdentifier: (topic: any DurableTopic, time: MonotonicTime)] = [:]

  var isEmpty: Bool { entries.isEmpty }

  /// The earliest time at which a topic is due; nil without topics.
  var first: MonotonicTime? { entries.values.lazy.map(\.time).min() }

  /// Makes the topic due at that time; keeps its time if that is earlier.
  mutating func add(_ topic: any DurableTopic, at time: MonotonicTime) {
    let known = entries[ObjectIdentifier(topic)]
    entries[ObjectIdentifier(topic)] = (topic, known.map { min($0.time, time) } ?? time)
  }

  mutating func remove(_ topic: any DurableTopic) { entries[ObjectIdentifier(topic)] = nil }

  /// Removes at most `most` topics, due or not, and returns them: the earliest if there are more.
  mutating func take(_ most: Int) -> [any DurableTopic] {
    guard entries.count > most else {
      defer { entries.removeAll(keepingCapacity: entries.capacity <= 1024) }
      return entries.values.map(\.topic)
    }
    let topics = entries.values.sorted { $0.time < $1.time }.prefix(most).map(\.topic)
    for topic in topics { remove(topic) }
    return topics
  }

  mutating func removeAll() { entries = [:] }
}
