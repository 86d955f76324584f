import SluiceCommand
import SluiceStore
import SluiceWire

/// Stores as objects of JSON, one a line.
enum StoreJSON {
  // MARK: Statistics

  static func line(_ topic: StoreStatistics.Topic) -> String {
    var object = JSONObject()
    object.add("topic", topic.row?.name)
    object.add("number", topic.id.rawValue)
    object.add("state", StoreTable.state(topic.row))
    if case .failure(let code, let message) = topic.row?.ending {
      object.add("failure_code", UInt64(code.rawValue))
      object.add("failure", message)
    }
    // A text, as with sluice topic show.
    if let row = topic.row { object.add("epoch", TopicTable.hexadecimal(row.epoch)) }
    object.add("first_offset", topic.extent.firstOffset)
    object.add("next_offset", topic.extent.head)
    object.add("records", topic.records)
    object.add("bytes", topic.bytes)
    object.add("batches", topic.batches)
    object.add("stored_bytes", topic.stored)
    object.add("oldest", topic.firstTime.map(WallTime.format))
    object.add("newest", topic.lastTime.map(WallTime.format))
    object.add("producers", topic.producers)
    object.add("cursors", topic.cursors)
    object.add("groups", topic.groups)
    if let row = topic.row { object.add("settings", settings(row.settings)) }
    return object.text + "\n"
  }

  /// Something that is damaged in the structure of a store's file.
  static func line(fault: String) -> String {
    var object = JSONObject()
    object.add("problem", "pages")
    object.add("message", fault)
    return object.text + "\n"
  }

  static func line(_ statistics: StoreStatistics) -> String {
    var object = JSONObject()
    object.add("topics", UInt64(statistics.topics.count))
    object.add("records", statistics.records)
    object.add("bytes", statistics.bytes)
    object.add("file_bytes", statistics.size.files)
    object.add("reusable_bytes", statistics.size.reusable)
    object.add("closed", statistics.wasClosed)
    return object.text + "\n"
  }

  /// As they are written on a command line.
  private static func settings(_ settings: TopicSettings) -> JSONObject {
    var object = JSONObject()
    for option in TopicOption.all {
      if let value = option.write(settings) { object.add(option.name, value) }
    }
    return object
  }

  // MARK: Findings

  static func line(_ finding: StoreFinding) -> String {
    var object = JSONObject()
    object.add("topic", finding.name)
    object.add("number", finding.topic.rawValue)
    object.add("problem", finding.problem.code)
    object.add("damage", finding.isDamage)
    object.add("batch", finding.batch)
    let missing = finding.missing ?? 0..<0
    object.add("missing", missing.upperBound - missing.lowerBound)
    object.add("missing_from", missing.isEmpty ? nil : missing.lowerBound)
    object.add("missing_to", missing.isEmpty ? nil : missing.upperBound - 1)
    object.add("message", "\(finding)")
    return object.text + "\n"
  }

  static func line(_ summary: StoreVerification) -> String {
    var object = JSONObject()
    object.add("topics", summary.topics)
    object.add("batches", summary.batches)
    object.add("records", summary.records)
    object.add("bytes", summary.bytes)
    object.add("states", summary.states)
    object.add("damaged", summary.damaged)
    object.add("missing_records", summary.missing)
    return object.text + "\n"
  }
}

extension JSONObject {
  /// Null for no text.
  fileprivate mutating func add(_ name: String, _ value: String?) {
    if let value { add(name, value) } else { add(name, nil as UInt64?) }
  }
}
