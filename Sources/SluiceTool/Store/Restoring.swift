import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceStore
import SluiceWire

/// One run of `sluice restore`. Used by one thread, which isn't the loop's.
struct Restoring {
  /// The topic being restored.
  private struct Target {
    var row: StoredTopic
    /// Nil if the topic has ended: all its records are restored.
    var subject: TopicSubject?
    /// The original offset of the first published record, which gets offset 0.
    var first: UInt64?
    /// The original offsets of the published records, which have gaps; only in a compact topic.
    var offsets: [UInt64] = []
    /// The offset up to which single records replace the batches; only in a compact topic.
    var carriedBefore: UInt64 = 0
    /// The floor: late subscribers get no record before this offset.
    var keptFrom: UInt64
    var positions: [StoredPosition] = []
    /// In the format of the store.
    var groups: [(name: String, state: StateEntry)] = []
    var producers: [StateEntry] = []

    /// The new offset of a record, or of the next published record.
    func offset(of former: UInt64) -> UInt64 {
      guard row.settings.compact != true else {
        return UInt64(offsets.firstIndex { $0 >= former } ?? offsets.count)
      }
      return former - min(first ?? former, former)
    }
  }

  private static let buffer = TopicSubject.Buffer(records: 65_536, bytes: 4 << 20)

  private let command: RestoreCommand
  private let client: Client
  private let run: Run
  private var target: Target?
  private var isWhole = false
  private var found: Set<String> = []
  private var topics: UInt64 = 0
  private var records: UInt64 = 0
  private var cursors: UInt64 = 0
  private var groups: UInt64 = 0
  private var producers: UInt64 = 0
  /// Notes about data that wasn't restored.
  private var notes: [String] = []
  /// The reasons why topics weren't restored.
  private var failures: [String] = []

  /// The log of a broker's or cluster's MQTT gateways. They write it as soon as they start, so entries of another log can't be added.
  private static let gatewayLog = "mqtt.sessions"

  init(_ command: RestoreCommand, _ client: Client, _ run: Run) {
    self.command = command
    self.client = client
    self.run = run
  }

  /// - Throws: ``StoreError`` with the broker's refusal.
  mutating func take(_ section: ExportSection) throws(StoreError) {
    do {
      switch section {
      case .topic(let row): try begin(row)
      case .batch(let value):
        try unsafe value.withUnsafeBytes { try unsafe publish($0) }
      case .state(let state): try note(state)
      case .topicEnd: try end()
      case .end: isWhole = true
      case .other: break
      }
    } catch let error as StoreError where error.kind == .damaged {
      throw error
    } catch {
      var topic = target?.row.name
      if case .topic(let row) = section { topic = row.name }
      let message = (error as? StoreError)?.message ?? "\(topic.map { "topic \($0): " } ?? "")\(error)"
      // The other topics are restored as long as the connection lasts.
      guard client.failure == nil else { throw StoreError(.failed, message) }
      failures.append(message)
      target = nil
    }
  }

  func finish() throws(StoreError) -> StoreJob.Outcome {
    guard isWhole else {
      throw StoreError(.damaged, "the export is incomplete; the topics before its end are restored")
    }
    let missing = command.topics.filter { !found.contains($0) }
    if !missing.isEmpty { return .failure("the export has no topic \(missing.joined(separator: ", "))") }
    if !command.isQuiet {
      let (notes, change) = (notes, change)
      let parts = [
        StoreTable.counted(topics, "topic"), StoreTable.counted(records, "record"),
        StoreTable.counted(cursors, "cursor"), StoreTable.counted(groups, "group"),
        StoreTable.counted(producers, "producer"),
      ]
      run.loop.execute { [run] in
        for note in notes { run.note(note) }
        run.note("restored \(parts.joined(separator: ", "))")
        if let change { run.note(change) }
      }
    }
    guard let first = failures.first else { return .success }
    guard failures.count > 1 else { return .failure(first) }
    let failures = failures
    run.loop.execute { [run] in for failure in failures { run.note(failure) } }
    return .failure("\(failures.count) topics weren't restored")
  }

  /// A note about changed offsets and times; nil if no record was restored.
  private var change: String? {
    guard records > 0 else { return nil }
    let times =
      command.timeHeader.map { "the original ones are in the header \($0)" }
      ?? "--time-header NAME keeps the original ones in a header"
    return "offsets begin at 0, and records have new times: \(times)"
  }

  // MARK: A topic

  private mutating func begin(_ row: StoredTopic) throws {
    guard command.topics.isEmpty || command.topics.contains(row.name) else { return }
    found.insert(row.name)
    let client = client
    let passing = RestoredSettings.passing(row.settings)
    var isEnded = false
    if let there = try topic(row.name) {
      isEnded = there.summary.ending != nil
      if row.name == Self.gatewayLog, there.summary.nextOffset > 0, command.topics.isEmpty {
        notes.append(
          "\(row.name) isn't restored, because MQTT gateways run already: MQTT clients begin new sessions"
        )
        return
      }
      guard command.isResuming || there.summary.nextOffset == 0 else {
        throw StoreError(
          .failed,
          "topic \(row.name) has records already: delete it, choose other topics with --topic, or continue an interrupted restore of this file with --resume"
        )
      }
      let changes = RestoredSettings.changes(from: there.settings, to: passing)
      if !isEnded, changes != TopicSettings() {
        let _: TopicInfo = try Waiting.answer { client.setTopic(row.name, to: changes, completion: $0) }
      }
    } else {
      let _: TopicInfo = try Waiting.answer {
        client.createTopic(row.name, settings: passing, completion: $0)
      }
    }
    // The epoch of the exported topic, so that another restore of it is the same producer.
    let producer = TopicSubject.Producer(id: max(row.epoch, 1))
    let isDurable = row.settings.storage == .durable
    let subject =
      isEnded
      ? nil
      : client.subject(
        row.name, acknowledgement: isDurable ? .durable : .received, buffer: Self.buffer, producer: producer)
    target = Target(row: row, subject: subject, keptFrom: row.floor)
  }

  private func topic(_ name: String) throws(ClientError) -> TopicInfo? {
    do throws(ClientError) {
      return try Waiting.answer { client.topicInfo(name, completion: $0) }
    } catch {
      guard error.code == .unknownTopic else { throw error }
      return nil
    }
  }

  private mutating func publish(_ value: UnsafeRawBufferPointer) throws {
    guard let target, let header = unsafe BatchHeader(value), let base = value.baseAddress else { return }
    var offset = header.firstOffset
    var time = header.firstTime
    var position = BatchHeader.size
    while position + RecordLayout.wordSize <= value.count {
      let word = unsafe RecordLayout.word(at: base + position)
      let size = RecordLayout.itemSize(word)
      guard position + size <= value.count else { break }
      let kind = RecordLayout.kind(word)
      if kind == .timeMark {
        time = unsafe RecordLayout.time(ofMarkAt: base + position)
      } else if RecordLayout.isRecord(word) {
        if offset >= max(target.keptFrom, target.carriedBefore) {
          let body = unsafe UnsafeRawBufferPointer(
            rebasing: value[(position + RecordLayout.wordSize)..<(position + size)])
          try unsafe publish(body, isAttributed: kind == .attributed, at: offset, time)
        }
        offset += 1
      }
      position += size
    }
  }

  private mutating func publish(
    _ body: UnsafeRawBufferPointer, isAttributed: Bool, at offset: UInt64, _ time: Int64
  ) throws {
    guard let target else { return }
    if target.first == nil { self.target?.first = offset }
    if target.row.settings.compact == true { self.target?.offsets.append(offset) }
    if let subject = target.subject {
      let message = try unsafe message(body, isAttributed: isAttributed, time)
      try Waiting.answer { subject.enqueue(message, completion: $0) }
    }
    records += 1
  }

  /// Publishes a single record of a compact topic, or stores the topic's marks, which come before the records.
  private mutating func take(newest state: StoredState) throws {
    switch try StoredNewest.decode(key: state.key, value: state.value) {
    case .marks(let carriedBefore, let keptFrom, _):
      target?.carriedBefore = carriedBefore
      target?.keptFrom = keptFrom
    case .record(let record):
      guard record.offset >= target?.keptFrom ?? 0 else { return }
      try unsafe record.item.withUnsafeBytes { item in
        try unsafe publish(
          UnsafeRawBufferPointer(rebasing: item[RecordLayout.wordSize...]), isAttributed: true,
          at: record.offset, record.time)
      }
    }
  }

  private func message(_ body: UnsafeRawBufferPointer, isAttributed: Bool, _ time: Int64) throws -> Message {
    var message: Message
    if isAttributed {
      let parts = try unsafe RecordAttributes(body)
      var headers: [Message.Header] = []
      unsafe parts.forEachHeader { name, value in
        unsafe headers.append(Message.Header(String(decoding: name, as: UTF8.self), [UInt8](value)))
      }
      message = unsafe Message(
        [UInt8](parts.payload), key: parts.key.map { unsafe [UInt8]($0) }, headers: headers)
    } else {
      message = unsafe Message([UInt8](body))
    }
    if let name = command.timeHeader { message.headers.append(Message.Header(name, WallTime.format(time))) }
    return message
  }

  private mutating func note(_ state: StoredState) throws {
    guard let target else { return }
    if state.kind == .newest { return try take(newest: state) }
    let given = StateEntry(key: state.key, value: state.value)
    guard let position = try StoredPosition(state) else {
      self.target?.producers.append(given)
      return
    }
    if !position.isGroup {
      self.target?.positions.append(position)
    } else if position.epoch == target.row.epoch {
      self.target?.groups.append((position.name, given))
    } else {
      notes.append(
        "\(target.row.name): group \(position.name) belongs to an earlier epoch of the topic, and isn't restored"
      )
    }
  }

  /// Finishes a topic: waits for the broker's acknowledgements, and restores cursors, groups, producers and the topic's end.
  private mutating func end() throws {
    guard let target else { return }
    self.target = nil
    let (client, row, subject) = (client, target.row, target.subject)
    if let subject { try Waiting.answer { subject.flush(completion: $0) } }
    for position in target.positions where position.epoch == row.epoch {
      let offset = target.offset(of: position.nextOffset)
      try Waiting.answer {
        client.moveCursor(position.name, of: row.name, to: .offset(offset), completion: $0)
      }
      cursors += 1
    }
    try restoreStates(of: target)
    let changes = RestoredSettings.changes(from: RestoredSettings.passing(row.settings), to: row.settings)
    if changes != TopicSettings() {
      let _: TopicInfo = try Waiting.answer { client.setTopic(row.name, to: changes, completion: $0) }
    }
    if let subject, let ending = row.ending {
      try Waiting.answer { subject.complete(Self.completion(ending), completion: $0) }
    }
    topics += 1
  }

  private static func completion(_ ending: Complete.Ending) -> Subscribers.Completion<ClientError> {
    switch ending {
    case .finished: .finished
    case .failure(_, let message): .failure(.topicFailure(message))
    }
  }

  // MARK: Groups and producers

  /// The most producers in one request.
  private static let producersAtOnce = 1_000

  private mutating func restoreStates(of target: Target) throws {
    let (client, name) = (client, target.row.name)
    // Without published records, all deliveries count as done.
    let origin = target.first ?? .max
    for (group, state) in target.groups {
      let frame = StateRestore(topic: name, kind: .group, origin: origin, states: [state])
      guard frame.encoded(stream: 1).count <= client.broker.maximumFrame else {
        notes.append(
          "\(name): group \(group) isn't restored, because its state is longer than the broker's --max-frame")
        continue
      }
      do throws(ClientError) {
        try Waiting.answer { client.restoreStates([state], .group, of: name, origin: origin, completion: $0) }
        groups += 1
      } catch {
        // The interrupted restore has created it, and members may have used it since.
        guard command.isResuming, error.code == .groupMismatch else { throw error }
      }
    }
    var rest = target.producers[...]
    while !rest.isEmpty {
      let some = Array(rest.prefix(Self.producersAtOnce))
      try Waiting.answer { client.restoreStates(some, .producer, of: name, origin: origin, completion: $0) }
      producers += UInt64(some.count)
      rest = rest.dropFirst(some.count)
    }
  }
}
