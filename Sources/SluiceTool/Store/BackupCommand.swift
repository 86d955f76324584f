import SluiceClient
import SluiceCommand
import SluiceStore
import SluiceWire

struct BackupCommand: Command {
  /// Empty for all durable topics.
  let topics: [String]
  let target: ExportTarget
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice backup", summary: "write durable topics of a running broker or cluster to a file",
    operands: [Operand("FILE", .optional)],
    options: [
      CommandOption(
        "topic", value: "TOPIC", help: "Only this topic. Without it, all durable topics.", isRepeatable: true)
    ] + ExportTarget.options + [StoreCommand.progress, StoreCommand.quiet],
    details: """
      Writes durable topics to FILE, which must not exist, or to standard output: their settings, their records with offsets, times, keys and headers, their durable \
      cursors, and how they ended. To read the file into a running broker or cluster, use sluice restore; to read it into a directory, sluice store import. Backup works \
      through the protocol, with any node of a cluster, while clients keep working.

      It includes groups with their unacknowledged records, and the sequences of producers, so that publishing stays exactly-once. Each topic is written as of one \
      moment: no cursor or group is beyond its last record. Records below the floor are left out. While it reads a topic, the command is one of the topic's \
      subscribers: producers of a lossless topic may wait for it.

      Needs permission to subscribe to each topic, and admin for its groups and producers, which are left out otherwise.
      """,
    examples: [
      "Back up a cluster.": "sluice --server n1.example,n2.example,n3.example backup topics.sluice",
      "Back up with the time in the name, and keep the last seven.":
        "sluice backup --to /backup/sluice-{time}.export --keep-copies 7",
      "Copy all topics of a cluster into another one.":
        "sluice --server n1.example backup | sluice --server other.example restore",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topics = arguments.texts("topic")
    target = try ExportTarget(arguments, operand: arguments.operands.first)
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    run.connect { client in
      StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
        let written = try target.write { output throws(StoreError) in
          var backup = BackingUp(client, run, job, try unsafe ExportWriter(output.write))
          try backup.write(topics)
          return backup
        }
        if !isQuiet { written?.report() }
        return .success
      }
    }
  }
}

/// One run of `sluice backup`. Used by one thread, which isn't the loop's.
struct BackingUp {
  /// The bytes of records requested at a time, estimated from the topic's mean record size, and the most records.
  private static let pageBytes: UInt64 = 8 << 20
  private static let pageRecords: UInt64 = 4_096

  private let client: Client
  private let run: Run
  private let job: StoreJob
  private var writer: ExportWriter
  private var totals = ExportSection.Totals()
  private var records: UInt64 = 0
  private var bytes: UInt64 = 0
  /// Notes about data that wasn't written.
  private var notes: [String] = []

  init(_ client: Client, _ run: Run, _ job: StoreJob, _ writer: ExportWriter) {
    self.client = client
    self.run = run
    self.job = job
    self.writer = writer
  }

  /// - Parameter names: empty for all durable topics.
  /// - Throws: ``StoreError`` with the broker's refusal; the export is incomplete then.
  mutating func write(_ names: [String]) throws(StoreError) {
    let client = client
    if names.isEmpty {
      let all = try asked { try Waiting.answer { client.topics(completion: $0) } }
      let durable = all.filter { $0.storage == .durable }
      job.expect(durable.reduce(0) { $0 + $1.bytes })
      for summary in durable { try write(summary.topic, isNamed: false) }
    } else {
      for name in Set(names).sorted() { try write(name, isNamed: true) }
    }
    try writer.write(.end(totals))
  }

  func report() {
    let lines =
      notes + ["exported \(StoreTable.text(totals.topics, records, totals.states))"]
    run.loop.execute { [run] in for line in lines { run.note(line) } }
  }

  private func asked<Value>(_ ask: () throws -> Value) throws(StoreError) -> Value {
    do {
      return try ask()
    } catch {
      throw StoreError(.failed, "\(error)")
    }
  }

  // MARK: A topic

  /// - Parameter isNamed: whether the topic must exist.
  private mutating func write(_ name: String, isNamed: Bool) throws(StoreError) {
    let client = client
    let cursors: [CursorInfo]
    let states: States
    let info: TopicInfo
    if isNamed { try requireDurable(name) }
    do throws(ClientError) {
      // Read before the topic's end, so that no cursor or group is beyond the end.
      cursors = try Waiting.answer { client.cursors(of: name, completion: $0) }
      states = try self.states(of: name)
      info = try Waiting.answer { client.topicInfo(name, completion: $0) }
    } catch {
      // The topic was deleted after the topics were listed.
      if error.code == .unknownTopic, !isNamed { return }
      throw StoreError(.failed, "topic \(name): \(error)")
    }
    var summary = info.summary
    guard states.epoch ?? summary.epoch == summary.epoch else {
      throw StoreError(.failed, "topic \(name): it was recreated while it was read; try again")
    }
    // The sequences of producers cover only records before that offset.
    summary.nextOffset = min(states.end ?? .max, summary.nextOffset)
    try writer.write(
      .topic(
        StoredTopic(
          name: name, settings: info.settings, epoch: summary.epoch, ending: summary.ending,
          isStated: info.isStated)))
    var topic = ExportSection.TopicTotals(batches: 0, states: 0, extent: StoredExtent())
    try write(recordsOf: summary, &topic)
    try write(cursors, of: summary, &topic)
    for state in states.all { try write(state, &topic) }
    try writer.write(.topicEnd(topic))
    totals.topics += 1
    totals.batches += topic.batches
    totals.states += topic.states
  }

  private func requireDurable(_ name: String) throws(StoreError) {
    let client = client
    let info = try asked { try Waiting.answer { client.topicInfo(name, completion: $0) } as TopicInfo }
    guard info.summary.storage == .durable else {
      throw StoreError(.failed, "topic \(name) is in memory; only durable topics can be exported")
    }
  }

  // MARK: Groups and producers

  private struct States {
    var all: [StoredState] = []
    var epoch: UInt64?
    /// The offset up to which the sequences of producers cover records; nil without sequences.
    var end: UInt64?
  }

  /// How often to read the sequences of many producers until no record was published between the pages.
  private static let attempts = 20

  private mutating func states(of name: String) throws(ClientError) -> States {
    var states = States()
    do throws(ClientError) {
      let groups = try pages(.group, of: name)
      states.epoch = groups.last?.epoch
      states.all = groups.flatMap(\.states).map { StoredState(.group, key: $0.key, value: $0.value) }
      for _ in 0..<Self.attempts {
        let producers = try pages(.producer, of: name)
        guard let first = producers.first, producers.allSatisfy({ $0.nextOffset == first.nextOffset }) else {
          continue
        }
        states.epoch = first.epoch
        states.end = first.nextOffset
        states.all += producers.flatMap(\.states).map {
          StoredState(.producer, key: $0.key, value: $0.value)
        }
        return states
      }
      notes.append(
        "\(name): the sequences of producers aren't exported, because they published all the time; records that they send again after a restore may be duplicates"
      )
    } catch {
      guard error.code == .permissionDenied else { throw error }
      notes.append("\(name): groups and sequences of producers aren't exported: \(error)")
    }
    return states
  }

  private func pages(_ kind: StateEntry.Kind, of name: String) throws(ClientError) -> [TopicStates] {
    var pages: [TopicStates] = []
    while pages.last?.more ?? true {
      let (client, after) = (client, pages.last?.states.last?.key ?? [])
      pages.append(try Waiting.answer { client.states(kind, of: name, after: after, completion: $0) })
    }
    return pages
  }

  private mutating func write(
    _ state: StoredState, _ topic: inout ExportSection.TopicTotals
  ) throws(StoreError) {
    try writer.write(.state(state))
    topic.states += 1
  }

  private mutating func write(
    recordsOf summary: TopicSummary, _ topic: inout ExportSection.TopicTotals
  ) throws(StoreError) {
    let page = max(1, min(Self.pageRecords, Self.pageBytes / max(1, summary.bytes / max(1, summary.records))))
    let reading = TopicReading(client, on: run.loop, summary.topic, upTo: summary.nextOffset)
    var batches = BackupBatches()
    if summary.nextOffset > summary.firstOffset {
      reading.begin()
      defer { reading.cancel() }
      while true {
        let records = try reading.next(Int(page), job)
        if job.isStopped { throw StoreError(.failed, "interrupted") }
        if records.isEmpty { break }
        for record in records {
          for block in batches.take(record) { try write(block, &topic) }
        }
        _ = job.progressed(to: bytes)
      }
    }
    if let block = batches.finish() { try write(block, &topic) }
    // Later records may have been dropped meanwhile.
    topic.extent.head = max(topic.extent.head, summary.nextOffset)
    if topic.batches == 0 { topic.extent.firstOffset = topic.extent.head }
    let lagged = reading.lagged
    if lagged > 0 {
      notes.append("\(summary.topic): \(StoreTable.counted(lagged, "record")) were dropped while it was read")
    }
  }

  private mutating func write(
    _ block: BatchBlock, _ topic: inout ExportSection.TopicTotals
  ) throws(StoreError) {
    block.seal(for: TopicID(rawValue: 0))
    try writer.write(.batch(unsafe [UInt8](block.value)))
    if topic.batches == 0 { topic.extent.firstOffset = block.firstOffset }
    topic.batches += 1
    topic.extent.head = block.endOffset
    topic.extent.bytesThrough = block.bytesThrough
    topic.extent.lastTime = block.lastTime
    records += block.endOffset - block.firstOffset
    bytes += UInt64(block.bytes)
  }

  private mutating func write(
    _ cursors: [CursorInfo], of summary: TopicSummary, _ topic: inout ExportSection.TopicTotals
  ) throws(StoreError) {
    for cursor in cursors where cursor.kind == .cursor {
      let position = StoredPosition(cursor: cursor.name, epoch: cursor.epoch, nextOffset: cursor.nextOffset)
      guard cursor.epoch == summary.epoch, let state = position.state else { continue }
      try write(state, &topic)
    }
  }
}

/// Makes batches from single records.
struct BackupBatches {
  private var block: BatchBlock?
  private var bytesThrough: UInt64 = 0
  private var item: [UInt8] = []

  /// - Returns: the batches that are complete.
  mutating func take(_ record: TopicRecord) -> [BatchBlock] {
    item.removeAll(keepingCapacity: true)
    unsafe record.withUnsafeBody { body, isAttributed in
      let word = RecordLayout.word(isAttributed ? .attributed : .plain, length: body.count)
      unsafe withUnsafeBytes(of: word.littleEndian) { unsafe item.append(contentsOf: $0) }
      unsafe item.append(contentsOf: body)
    }
    var complete: [BatchBlock] = []
    // A gap in the offsets begins another batch.
    if let block, block.endOffset != record.offset { complete += [finish()].compactMap { $0 } }
    while true {
      let current = block ?? BatchBlock(firstOffset: record.offset, bytesBefore: bytesThrough)
      block = current
      let taken = unsafe item.withUnsafeBytes {
        unsafe current.append($0, count: 1, time: record.time.millisecondsSince1970)
      }
      if taken.records == 1 { return complete }
      complete += [finish()].compactMap { $0 }
    }
  }

  /// The last batch; nil for none.
  mutating func finish() -> BatchBlock? {
    defer { block = nil }
    if let block { bytesThrough = block.bytesThrough }
    return block
  }
}
