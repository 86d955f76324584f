import SluiceClient
import SluiceWire
import TestSupport

/// One durable topic of a crash test: its clients, and the records that must stay in it.
final class CrashTopic {
  let name: String
  let sync: TopicSettings.Sync
  let producers: [CrashProducer]
  let reader: CrashReader
  let group: CrashGroup
  /// The records that no later crash may lose.
  private(set) var stable: [CrashRecord] = []
  /// The next sequence of each producer after them.
  private var progress: [UInt64: UInt64] = [:]
  /// The epochs so far, one for each start.
  private var epochs: [UInt64] = []

  init(_ name: String, _ sync: TopicSettings.Sync, index: UInt64, random: inout SeededRandom) {
    self.name = name
    self.sync = sync
    producers = [
      CrashProducer(name, id: index * 10 + 1, acknowledgement: .durable),
      CrashProducer(name, id: index * 10 + 2, acknowledgement: .received),
    ]
    reader = CrashReader(name, isSynchronous: sync == .always, marker: index * 10 + 3, random: random.split())
    group = CrashGroup(name, random: random.split())
  }

  var isSynchronous: Bool { sync == .always }

  var settings: TopicSettings {
    var settings = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
      replayAge: TopicSettings.unlimited)
    settings.storage = .durable
    settings.sync = sync
    return settings
  }

  private var all: [CrashProducer] { producers + [reader.marker] }

  func requireHealth() throws {
    for producer in all { if let failure = producer.failure { throw TestFailure(failure) } }
    if let failure = reader.failure ?? group.failure { throw TestFailure(failure) }
  }

  /// Checks the broker's records of the topic after a start, while clients use it.
  ///
  /// - Parameters:
  ///   - wasCut: whether the last broker was killed.
  ///   - isThorough: whether to check stable records again.
  func check(_ broker: BrokerProcess, wasCut: Bool, isThorough: Bool) throws {
    try requireHealth()
    let acknowledged = all.map { ($0, $0.acknowledged, $0.receipt) }
    let durable = reader.durable
    let client = try broker.client("checker", maximumFrame: 16 << 20)
    let begin = isThorough ? 0 : stable.count
    let place = try client.subscribe(name, stream: 1, from: .offset(UInt64(begin)), lag: .fail)
    try require(place.nextOffset == begin, "\(name) begins at \(place.nextOffset) instead of \(begin)")
    if place.liveOffset > begin { try client.receiveRecords(place.liveOffset - UInt64(begin), stream: 1) }
    var found: [CrashRecord] = []
    for payload in client.subscriptions[1]!.payloads {
      guard let record = CrashRecord(payload) else {
        throw TestFailure("\(name)@\(begin + found.count) is a record that no producer has published")
      }
      found.append(record)
    }
    if isThorough {
      try require(found.starts(with: stable), "records of \(name) have changed that were stable")
      found.removeFirst(stable.count)
    }
    let next = try checkSequences(found)
    for (producer, through, receipt) in acknowledged {
      try check(producer, acknowledged: through, receipt: receipt, isThere: next[producer.id] ?? 0, found)
    }
    try checkEpoch(place.epoch, wasCut: wasCut)
    try checkCursor(client, atLeast: durable)
    settle(found)
  }

  /// Checks that each producer's records occur once, in order. Returns the next sequence of each.
  private func checkSequences(_ found: [CrashRecord]) throws -> [UInt64: UInt64] {
    var next = progress
    for (index, record) in found.enumerated() {
      guard let producer = all.first(where: { $0.id == record.producer }), record.sequence < producer.sent
      else {
        throw TestFailure("\(name)@\(stable.count + index) is \(record), which no producer has published")
      }
      let expected = next[record.producer] ?? 0
      // Records that were only received may be lost, and then aren't published again.
      let mayMiss = !isSynchronous && producer.acknowledgement == .received
      guard record.sequence == expected || mayMiss && record.sequence > expected else {
        throw TestFailure("\(name)@\(stable.count + index) is \(record), where number \(expected) was next")
      }
      next[record.producer] = record.sequence + 1
    }
    return next
  }

  private func check(
    _ producer: CrashProducer, acknowledged: UInt64, receipt: (sequence: UInt64, offset: UInt64)?,
    isThere: UInt64, _ found: [CrashRecord]
  ) throws {
    guard isSynchronous || producer.acknowledgement == .durable else { return }
    guard acknowledged <= isThere else {
      throw TestFailure(
        "\(name) has \(isThere) records of producer \(producer.id), of which \(acknowledged) were acknowledged"
      )
    }
    guard let receipt, receipt.offset >= stable.count else { return }
    let index = Int(receipt.offset) - stable.count
    let record = found.indices.contains(index) ? found[index] : nil
    guard record == CrashRecord(producer: producer.id, sequence: receipt.sequence) else {
      throw TestFailure(
        "\(name)@\(receipt.offset) is \(record.map { "\($0)" } ?? "missing"), and was acknowledged as \(producer.id):\(receipt.sequence)"
      )
    }
  }

  private func checkEpoch(_ found: UInt64, wasCut: Bool) throws {
    if let last = epochs.last {
      let isNew = wasCut && !isSynchronous
      try require((found != last) == isNew, "\(name) has epoch \(found) after \(last)")
    }
    epochs.append(found)
  }

  private func checkCursor(_ client: RawClient, atLeast durable: UInt64) throws {
    // The reader lowers `committed` when it learns that records are lost.
    let before = reader.committed
    let cursor = try client.listCursors(of: name).cursors.first { $0.name == CrashReader.cursor }
    let committed = max(before, reader.committed)
    guard let cursor else {
      return try require(durable == 0, "the cursor of \(name) is gone, which had come to \(durable)")
    }
    try require(
      cursor.nextOffset >= durable && cursor.nextOffset <= committed,
      "the cursor of \(name) is at \(cursor.nextOffset), with commits up to \(committed), of which \(durable) is durable"
    )
    // Until its reader is back, the cursor is in an epoch that the present one continues.
    try require(
      epochs.contains(cursor.epoch), "the cursor of \(name) is in an epoch that the topic never had")
  }

  /// Marks records that can no longer be lost; they aren't checked again. Without sync `always`, these are the records acknowledged as durable.
  private func settle(_ found: [CrashRecord]) {
    var count = found.count
    if !isSynchronous {
      let offsets = all.filter { $0.acknowledgement == .durable }.compactMap { $0.receipt?.offset }
      count = min(max(Int(offsets.max() ?? 0) + 1 - stable.count, 0), count)
    }
    for record in found.prefix(count) { progress[record.producer] = record.sequence + 1 }
    stable += found.prefix(count)
  }
}
