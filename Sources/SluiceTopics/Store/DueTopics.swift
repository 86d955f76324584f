import SluiceIO

/// The topics that have something to be stored, and when.
struct DueTopics {
  private(set) var entries: [ObjectIdentifier: (topic: any DurableTopic, time: MonotonicTime)] = [:]

  var isEmpty: Bool { entries.isEmpty }

  /// The earliest time at which a topic is due; nil without topics.
  var first: MonotonicTime? { entries.values.lazy.map(\.time).min() }

  /// The topic is due at that time, or when it was already.
  mutating func add(_ topic: any DurableTopic, at time: MonotonicTime) {
    let known = entries[ObjectIdentifier(topic)]
    entries[ObjectIdentifier(topic)] = (topic, known.map { min($0.time, time) } ?? time)
  }

  mutating func remove(_ topic: any DurableTopic) { entries[ObjectIdentifier(topic)] = nil }

  /// Takes out so many topics at most, due or not: the earliest of more.
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
