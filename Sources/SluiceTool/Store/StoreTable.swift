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

  /// Text from a damaged store may be anything: it stays a line, and can't steer the terminal.
  static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
  }
}
