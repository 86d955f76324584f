/// The subjects of topics to which something is published now and then: those that were used last. Each keeps a publication open.
struct SubjectCache {
  private struct Entry {
    var subject: TopicSubject
    var lastUse: UInt64
  }

  /// Subjects kept at a time.
  private let limit: Int
  private var entries: [String: Entry] = [:]
  private var uses: UInt64 = 0
  private let make: (Client, String) -> TopicSubject

  /// - Parameter make: makes the subject of a topic.
  init(limit: Int = 64, make: @escaping (Client, String) -> TopicSubject) {
    self.limit = limit
    self.make = make
  }

  /// The topic's subject. One that has come to an end is replaced, and the one that was used longest ago goes when there are too many:
  /// it publishes what it has.
  mutating func use(_ topic: String, of client: Client) -> TopicSubject {
    uses += 1
    if let entry = entries[topic], entry.subject.publication.isActive {
      entries[topic]?.lastUse = uses
      return entry.subject
    }
    let subject = make(client, topic)
    entries[topic] = Entry(subject: subject, lastUse: uses)
    if entries.count > limit, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      entries[oldest.key] = nil
    }
    return subject
  }
}
