import SluiceCommand
import SluiceStore
import SluiceStoreLMDB
import SluiceWire

/// Stores for people.
enum StoreTable {
  // MARK: Statistics

  /// What was read of a damaged file, and what wasn't.
  static func text(_ rebuild: StoreRebuild) -> String {
    var text = rebuild.faults.map { "the file: \($0)\n" }.joined()
    text +=
      "built anew from what could be read: \(counted(rebuild.topics, "topic")), \(counted(rebuild.batches, "batch", "batches")), \(counted(rebuild.states, "state")); "
    text += "\(counted(rebuild.lost, "entry", "entries")) couldn't be read\n"
    return text
  }

  static func list(_ statistics: StoreStatistics) -> String {
    var text = ""
    if !statistics.topics.isEmpty {
      text =
        TextTable.render(
          [["TOPIC", "STATE", "RECORDS", "FROM", "BYTES", "OLDEST", "NEWEST", "CURSORS", "GROUPS"]]
            + statistics.topics.map { topic in
              [
                name(topic), state(topic.row), "\(topic.records)", "\(topic.extent.firstOffset)",
                ByteSize.rounded(topic.bytes), topic.firstTime.map(WallTime.format) ?? "",
                topic.lastTime.map(WallTime.format) ?? "", "\(topic.cursors)", "\(topic.groups)",
              ]
            }, leftColumns: 2) + "\n"
    }
    let size = statistics.size
    text += "\(counted(UInt64(statistics.topics.count), "topic")), \(counted(statistics.records, "record")); "
    text += "\(ByteSize.rounded(size.files)) on disk, \(ByteSize.rounded(size.reusable)) of that free\n"
    if !statistics.wasClosed { text += "It wasn't closed in order when it was used last.\n" }
    return text
  }

  static func show(_ topic: StoreStatistics.Topic) -> String {
    var rows = [
      ["topic", name(topic)], ["number", "\(topic.id.rawValue)"], ["state", state(topic.row)],
      [
        "records",
        topic.records == 0
          ? "none kept, \(topic.extent.head) published"
          : "\(topic.records) kept, offsets \(topic.extent.firstOffset) to \(topic.extent.head - 1)",
      ],
      ["bytes", ByteSize.rounded(topic.bytes)],
      ["on disk", "\(ByteSize.rounded(topic.stored)) in \(counted(topic.batches, "batch", "batches"))"],
    ]
    if let first = topic.firstTime, let last = topic.lastTime {
      rows += [["oldest", WallTime.format(first)], ["newest", WallTime.format(last)]]
    }
    rows += [
      ["producers", "\(topic.producers)"], ["cursors", "\(topic.cursors)"], ["groups", "\(topic.groups)"],
    ]
    guard let row = topic.row else { return TextTable.render(rows, leftColumns: 2) }
    if case .failure(_, let message) = row.ending { rows.insert(["failure", shown(message)], at: 3) }
    rows.insert(["epoch", TopicTable.hexadecimal(row.epoch)], at: 2)
    rows += TopicOption.all.compactMap { option in option.write(row.settings).map { [option.name, $0] } }
    return TextTable.render(rows, leftColumns: 2)
  }

  static func name(_ topic: StoreStatistics.Topic) -> String {
    topic.row.map { shown($0.name) } ?? "(number \(topic.id.rawValue))"
  }

  static func state(_ row: StoredTopic?) -> String {
    guard let row else { return "unreadable" }
    return switch row.ending {
    case nil: "open"
    case .finished: "finished"
    case .failure: "failed"
    }
  }

  // MARK: Summaries

  static func text(_ summary: StoreVerification) -> String {
    var text = "\(counted(summary.topics, "topic")), \(counted(summary.records, "record")) in "
    text += "\(counted(summary.batches, "batch", "batches")), \(ByteSize.rounded(summary.bytes)): "
    text += summary.damaged == 0 ? "no damage" : counted(summary.damaged, "finding")
    if summary.missing > 0 { text += ", \(counted(summary.missing, "record")) missing" }
    return text + "\n"
  }

  static func text(_ summary: StoreRepair, isDryRun: Bool) -> String {
    guard summary.steps > 0 else { return "nothing \(summary.left > 0 ? "that can be mended" : "to mend")\n" }
    var text = "\(counted(summary.steps, "thing")) \(isDryRun ? "to mend" : "mended")"
    if summary.missing > 0 { text += "; \(counted(summary.missing, "record")) lost" }
    return text + "\n"
  }

  static func text(_ summary: StoreExport) -> String {
    text(summary.topics, summary.records, summary.states)
  }

  static func text(_ summary: StoreImport) -> String {
    text(summary.topics, summary.records, summary.states)
  }

  private static func text(_ topics: UInt64, _ records: UInt64, _ states: UInt64) -> String {
    "\(counted(topics, "topic")) with \(counted(records, "record")) and \(counted(states, "state"))"
  }

  private static func counted(_ count: UInt64, _ one: String, _ many: String? = nil) -> String {
    "\(Magnitude.grouped(count)) \(count == 1 ? one : many ?? one + "s")"
  }

  // MARK: Findings

  static func shown(_ finding: StoreFinding) -> String { shown("\(finding)") }

  /// Without control characters: text from a damaged store stays one line, and can't control the terminal.
  static func shown(_ text: String) -> String {
    Complaint.clean(text)
  }
}

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
