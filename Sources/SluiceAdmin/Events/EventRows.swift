import SluiceBroker
import SluiceCommand
import SluiceWire

/// What watchers have been shown of topics, so that the next event has no more than what has changed.
struct EventRows {
  /// The topics as JSON, by name, as of the last sample.
  private var rows: [String: String] = [:]
  private let limit: Int

  /// - Parameter limit: the most topics.
  init(limit: Int) {
    self.limit = limit
  }

  /// One sample as two events: for who has seen the one before, and for who hasn't.
  mutating func update(_ snapshot: BrokerSnapshot, version: String) -> (changes: String, all: () -> String) {
    var changed: [String] = []
    var shown: [String: String] = [:]
    for topic in snapshot.topics.prefix(limit) {
      let name = topic.summary.topic
      let row = TopicJSON.text(topic)
      shown[name] = row
      if rows[name] != row { changed.append(row) }
    }
    let gone = rows.keys.filter { shown[$0] == nil }
    rows = shown
    let omitted = snapshot.topicCount - shown.count
    func event(topics: some Sequence<String>, gone: [String], isAll: Bool) -> String {
      var object = JSONObject()
      object.add("all", isAll)
      object.add("broker", BrokerJSON.object(snapshot, version: version))
      object.add("topics", json: AdminJSON.array(topics))
      object.add("gone", json: AdminJSON.array(gone.map { JSONText.quoted($0) }))
      object.add(number: "omitted", omitted)
      object.add("connections", snapshot.connections.map(BrokerJSON.connection))
      return Self.event("sample", object.text)
    }
    return (
      event(topics: changed, gone: gone, isAll: false),
      { event(topics: shown.values, gone: [], isAll: true) }
    )
  }

  /// Nobody watches: what was shown is of no use.
  mutating func clear() { rows = [:] }

  /// As server-sent events are written. The data has no line breaks.
  static func event(_ name: String, _ data: String) -> String { "event: \(name)\ndata: \(data)\n\n" }
}
