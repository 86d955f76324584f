import SluiceCommand
import SluiceStore
import SluiceStoreLMDB
import SluiceWire

/// Stores for people.
enum StoreTable {
  // MARK: Statistics

  /// The readable and the unreadable parts of a rebuilt file.
  static func text(_ rebuild: StoreRebuild) -> String {
    var text = rebuild.faults.map { "the file: \(ShownText.line("\($0)"))\n" }.joined()
    text +=
      "rebuilt from all readable parts: \(counted(rebuild.topics, "topic")), \(counted(rebuild.batches, "batch", "batches")), \(counted(rebuild.states, "state")); "
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
    if !statistics.wasClosed { text += "The last broker didn't close it.\n" }
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
    if topic.carried > 0 { rows.append(["kept by key", counted(topic.carried, "record")]) }
    if let first = topic.firstTime, let last = topic.lastTime {
      rows += [["oldest", WallTime.format(first)], ["newest", WallTime.format(last)]]
    }
    rows += [
      ["producers", "\(topic.producers)"], ["cursors", "\(topic.cursors)"], ["groups", "\(topic.groups)"],
    ]
    guard let row = topic.row else { return TextTable.render(rows, leftColumns: 2) }
    if let failure = row.ending.failure { rows.insert(["failure", failure.message], at: 3) }
    rows.insert(["epoch", TopicTable.hexadecimal(row.epoch)], at: 2)
    rows += TopicOption.written(row.settings).map { [$0.name, $0.value] }
    return TextTable.render(rows, leftColumns: 2)
  }

  static func name(_ topic: StoreStatistics.Topic) -> String {
    topic.row.map { $0.name } ?? "(number \(topic.id.rawValue))"
  }

  static func state(_ row: StoredTopic?) -> String { row.map(\.ending.state) ?? "unreadable" }

  // MARK: Summaries

  static func text(_ summary: StoreVerification) -> String {
    var text = "\(counted(summary.topics, "topic")), \(counted(summary.records, "record")) in "
    text += "\(counted(summary.batches, "batch", "batches")), \(ByteSize.rounded(summary.bytes)): "
    text += summary.damaged == 0 ? "no damage" : counted(summary.damaged, "finding")
    if summary.missing > 0 { text += ", \(counted(summary.missing, "record")) missing" }
    return text + "\n"
  }

  static func text(_ summary: StoreRepair, isDryRun: Bool) -> String {
    guard summary.steps > 0 else { return "nothing \(summary.left > 0 ? "can be repaired" : "to repair")\n" }
    var text = "\(counted(summary.steps, "repair")) \(isDryRun ? "needed" : "made")"
    if summary.missing > 0 { text += "; \(counted(summary.missing, "record")) lost" }
    return text + "\n"
  }

  /// The amounts of an export or import.
  ///
  /// - Parameter states: the number of states of cursors, groups and producers.
  static func text(_ topics: UInt64, _ records: UInt64, _ states: UInt64) -> String {
    "\(counted(topics, "topic")) with \(counted(records, "record")) and \(self.states(states))"
  }

  /// "the state of 1 producer, cursor or group", "the states of 3 producers, cursors and groups".
  private static func states(_ count: UInt64) -> String {
    count == 1
      ? "the state of 1 producer, cursor or group"
      : "the states of \(Magnitude.grouped(count)) producers, cursors and groups"
  }

  static func counted(_ count: UInt64, _ one: String, _ many: String? = nil) -> String {
    "\(Magnitude.grouped(count)) \(count == 1 ? one : many ?? one + "s")"
  }
}

/// Stores as objects of JSON.
enum StoreJSON {
  // MARK: Statistics

  static func object(_ topic: StoreStatistics.Topic) -> JSON {
    let failure = topic.row?.ending.failure
    return [
      "topic": .textOrNull(topic.row?.name), "number": .number(topic.id.rawValue),
      "state": .text(StoreTable.state(topic.row)), "failure_code": failure.map { .number($0.code.rawValue) },
      "failure": failure.map { .text($0.message) },
      // A text, as with sluice topic show.
      "epoch": topic.row.map { .text(TopicTable.hexadecimal($0.epoch)) },
      "first_offset": .number(topic.extent.firstOffset), "next_offset": .number(topic.extent.head),
      "records": .number(topic.records), "bytes": .number(topic.bytes), "batches": .number(topic.batches),
      "kept_by_key": .number(topic.carried),
      "stored_bytes": .number(topic.stored), "oldest": .textOrNull(topic.firstTime.map(WallTime.format)),
      "newest": .textOrNull(topic.lastTime.map(WallTime.format)), "producers": .number(topic.producers),
      "cursors": .number(topic.cursors), "groups": .number(topic.groups),
      // In the notation of options.
      "settings": topic.row.map { TopicOption.json($0.settings) },
    ]
  }

  /// Damage in the structure of a store's file.
  static func object(fault: String) -> JSON { ["problem": .text("pages"), "message": .text(fault)] }

  static func object(_ statistics: StoreStatistics) -> JSON {
    [
      "topics": .number(statistics.topics.count), "records": .number(statistics.records),
      "bytes": .number(statistics.bytes), "file_bytes": .number(statistics.size.files),
      "reusable_bytes": .number(statistics.size.reusable), "closed": .flag(statistics.wasClosed),
    ]
  }

  // MARK: Findings

  static func object(_ finding: StoreFinding) -> JSON {
    let missing = finding.missing ?? 0..<0
    return [
      "topic": .textOrNull(finding.name), "number": .number(finding.topic.rawValue),
      "problem": .text(finding.problem.code), "damage": .flag(finding.isDamage),
      "batch": .number(finding.batch), "missing": .number(missing.upperBound - missing.lowerBound),
      "missing_from": .number(missing.isEmpty ? nil : missing.lowerBound),
      "missing_to": .number(missing.isEmpty ? nil : missing.upperBound - 1), "message": .text("\(finding)"),
    ]
  }

  static func object(_ summary: StoreVerification) -> JSON {
    [
      "topics": .number(summary.topics), "batches": .number(summary.batches),
      "records": .number(summary.records), "bytes": .number(summary.bytes),
      "states": .number(summary.states), "damaged": .number(summary.damaged),
      "missing_records": .number(summary.missing),
    ]
  }
}
