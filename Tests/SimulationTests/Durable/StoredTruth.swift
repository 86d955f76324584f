import SluiceStore
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// One topic as it is on disk, and every observation of it.
final class StoredTruth {
  typealias Record = DurableOracle.Record

  let name: String
  let id: TopicID
  private unowned let oracle: DurableOracle
  private(set) var row: StoredTopic
  /// All records that ever got to disk, by offset.
  private(set) var log: [Record] = []
  private var times: [Int64] = []
  /// The producer and sequence of each record.
  private var origins: [(producer: Int, sequence: Int)] = []
  /// Where each batch ends, and how many bytes of records there are up to its end.
  private var batches: [(end: UInt64, bytes: UInt64)] = []
  /// The number of records of each producer that are stored without a gap, from its first record; and the last of them.
  private(set) var stored: [Int: Int] = [:]
  private var last: [Int: Int] = [:]
  /// The first retained record.
  private(set) var first: UInt64 = 0
  /// The topic's epochs, in order, and the offset at which each former epoch ended.
  private(set) var lives: [(epoch: UInt64, end: UInt64?)]
  /// The epochs that are on disk.
  private var storedLives: Set<UInt64>
  /// Records that clients saw before they were on disk, in the present epoch.
  private var early: [UInt64: Record] = [:]
  private(set) var cursors: [String: StoredCursor] = [:]
  /// The furthest commit of each cursor.
  private var asked: [String: UInt64] = [:]
  /// Cursors whose last commit may be lost.
  private var doubtful: Set<String> = []

  init(_ id: TopicID, _ row: StoredTopic, oracle: DurableOracle) {
    self.id = id
    self.row = row
    self.oracle = oracle
    name = row.name
    lives = [(row.epoch, nil)]
    storedLives = [row.epoch]
  }

  var head: UInt64 { UInt64(log.count) }
  var isSynchronous: Bool { row.settings.sync == .always }
  var epoch: UInt64 { lives[lives.count - 1].epoch }
  var ending: Complete.Ending? { row.ending }

  /// Whether no record may ever be missing.
  private var keepsAll: Bool {
    row.settings.replayRecords == TopicSettings.unlimited
      && row.settings.replayBytes == TopicSettings.unlimited && !hasChanged
  }

  /// Whether a client has requested another limit or a trim.
  private var hasChanged: Bool { askedTrim > 0 || leastRecords < .max }
  /// The lowest record limit that the topic has had or a client has requested.
  private var leastRecords = UInt64.max
  /// The furthest requested trim, and the furthest answered one.
  private var askedTrim: UInt64 = 0
  private(set) var answeredTrim: UInt64 = 0

  func limits(to records: UInt64) {
    // A higher limit doesn't bring back records that the former limit dropped.
    leastRecords = min(leastRecords, records, row.settings.replayRecords ?? .max)
  }
  func trims(to offset: UInt64) { askedTrim = max(askedTrim, offset) }
  func trimmed(to offset: UInt64) { answeredTrim = max(answeredTrim, offset) }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    oracle.check(holds, "\(name): \(what())")
  }

  // MARK: On disk

  func committed(_ change: TopicChange) {
    if let row = change.row {
      check(self.row.ending == nil || row.ending == self.row.ending, "its ending is lost")
      self.row = row
      storedLives.insert(row.epoch)
    }
    for batch in change.batches {
      let bytes = Array(batch.value)
      bytes.withUnsafeBytes { bytes in
        guard let view = BatchView(bytes, of: id, at: batch.firstOffset) else {
          return oracle.fail("\(name) has a batch that can't be right")
        }
        check(batch.firstOffset == head, "a batch for \(batch.firstOffset) is stored at \(head)")
        check(row.ending == nil || change.row != nil, "records are stored behind the end")
        oracle.records(in: view.items) { add($0, at: $1) }
        batches.append((head, (batches.last?.bytes ?? 0) + UInt64(view.items.count)))
      }
    }
    for state in change.states { committed(state) }
    if let offset = change.truncateBefore {
      check(!keepsAll, "records before \(offset) are dropped without need")
      first = max(first, min(offset, head))
    }
  }

  private func add(_ record: Record, at time: Int64) {
    guard let origin = oracle.origin(of: record, in: name) else { return }
    if let seen = early.removeValue(forKey: head) {
      check(seen == record, "record \(head) is another one than was seen before it was on disk")
    }
    let before = last[origin.producer] ?? -1
    check(
      origin.sequence > before,
      "record \(origin.sequence) of producer \(origin.producer) is stored after \(before)")
    if origin.sequence == stored[origin.producer, default: 0] { stored[origin.producer, default: 0] += 1 }
    last[origin.producer] = max(before, origin.sequence)
    check(times.last.map { $0 <= time } ?? true, "record \(head) is older than the one before it")
    times.append(time)
    log.append(record)
    origins.append(origin)
  }

  private func committed(_ state: TopicChange.State) {
    guard state.kind == .cursor else { return }
    do {
      let name = try StoredValue.name(state.key)
      cursors[name] = try state.value.map { try StoredCursor(decoding: $0) }
    } catch {
      oracle.fail("\(name) has a cursor that can't be read: \(error)")
    }
  }

  // MARK: Lives

  /// Checks a broker that has restored the topic.
  ///
  /// - Parameter isHealthy: whether the disk works.
  func restarted(
    epoch: UInt64, head: UInt64, ending: Complete.Ending?, inOrder: Bool, isHealthy: Bool
  ) {
    early = [:]
    // Unstored commits are lost.
    asked = cursors.compactMapValues { continued(from: $0.found.place.epoch, at: $0.found.place.nextOffset) }
    check(head == self.head, "begins at \(head), where \(self.head) are on disk")
    check(ending == row.ending, "has ended with \(ending as Any), where \(row.ending as Any) is on disk")
    if isSynchronous || row.ending != nil || inOrder && isHealthy {
      check(epoch == self.epoch, "is in another life without need")
    } else if !inOrder {
      check(!lives.contains { $0.epoch == epoch }, "is in the same life though records may be lost")
    }
    guard epoch != self.epoch else { return }
    check(storedLives.contains(epoch) || !isHealthy, "is in a life of which nothing is on disk")
    lives[lives.count - 1].end = self.head
    lives.append((epoch, nil))
  }

  /// Whether no client can have seen that epoch.
  func isForgotten(_ epoch: UInt64) -> Bool { !storedLives.contains(epoch) }

  /// The offset at which a client at `offset` in `epoch` continues now.
  func continued(from epoch: UInt64, at offset: UInt64) -> UInt64? {
    guard let index = lives.firstIndex(where: { $0.epoch == epoch }) else { return nil }
    return lives[index...].reduce(offset) { min($0, $1.end ?? .max) }
  }

  // MARK: Seen

  /// A client received a record.
  func saw(_ record: Record, at offset: UInt64, epoch: UInt64, by client: String) {
    oracle.delivered += 1
    guard oracle.origin(of: record, in: name) != nil else { return }
    if offset < head, epoch == self.epoch {
      check(record == log[Int(offset)], "\(client) got another record \(offset) than is on disk")
    } else if epoch == self.epoch {
      check(!isSynchronous, "\(client) got record \(offset) before it was on disk, which is at \(head)")
      if let seen = early.updateValue(record, forKey: offset) {
        check(seen == record, "\(client) got another record \(offset) than an earlier client")
      }
    }
    // Records that the broker sent before it crashed are checked by their readers after they resume.
  }

  /// A producer got an acknowledgement for its records up to `through`.
  func acknowledged(_ producer: Int, through: Int, at lastOffset: UInt64?, isDurable: Bool) {
    guard isDurable || isSynchronous else { return }
    let stored = stored[producer] ?? 0
    check(
      stored >= through,
      "\(through) records of producer \(producer) are acknowledged, where \(stored) are on disk")
    guard let lastOffset, through > 0, stored >= through else { return }
    guard lastOffset < head else { return oracle.fail("\(name): record \(lastOffset) is acknowledged") }
    check(
      origins[Int(lastOffset)] == (producer, through - 1),
      "record \(through - 1) of producer \(producer) is said to be at \(lastOffset), where there is \(origins[Int(lastOffset)])"
    )
  }

  /// A client received the topic's terminal event.
  func told(_ ending: Complete.Ending, client: String) {
    check(
      ending == row.ending,
      "\(client) is told of an end with \(ending), where \(row.ending as Any) is on disk")
  }

  /// A subscription starts at `offset`; it requested `start` when the topic had `asked` records.
  func began(_ start: Subscribe.Start, at offset: UInt64, since asked: UInt64, client: String) {
    guard isSynchronous, keepsAll else { return }
    let isRight =
      switch start {
      case .last(let count): (asked - min(count, asked)...head - min(count, head)).contains(offset)
      case .new: (asked...head).contains(offset)
      case .time(let time):
        (offset == 0 || offset <= head && times[Int(offset) - 1] < time)
          && (offset >= head || times[Int(offset)] >= time)
      default: offset == 0
      }
    check(isRight, "\(client) begins at \(offset) of \(head), where it has asked for \(start)")
  }

  /// A client received a notice that records before `next` were dropped.
  func lagged(to next: UInt64, client: String) {
    check(!keepsAll, "\(client) is told that records before \(next) are gone")
    // Records that aren't on disk yet may count towards the limit.
    guard isSynchronous else { return }
    let limit = min(row.settings.replayRecords ?? .max, leastRecords)
    check(
      next <= max(first, head - min(limit, head), byteFloor, min(askedTrim, head)),
      "\(client) is told that records before \(next) are gone, where \(first) is the first on disk, of \(head)"
    )
  }

  /// The first record on disk that the limit of bytes keeps. It keeps whole batches, and takes effect before the commit that drops the others.
  private var byteFloor: UInt64 {
    guard let limit = row.settings.replayBytes, let bytes = batches.last?.bytes else { return 0 }
    return batches.last { bytes - $0.bytes >= limit }?.end ?? 0
  }

  // MARK: Cursors

  func asks(cursor: String, through offset: UInt64) {
    asked[cursor] = max(asked[cursor] ?? 0, offset)
  }

  func doubts(cursor: String) { doubtful.insert(cursor) }

  func began(cursor: String, at offset: UInt64, epoch: UInt64, client: String) {
    guard epoch == self.epoch else { return }
    let most = asked[cursor] ?? 0
    // A position beyond the last commit is right only if the records between were dropped.
    if offset > most { lagged(to: offset, client: "\(client), whose cursor was never beyond \(most),") }
    guard let stored = cursors[cursor]?.found.place else { return }
    let least = continued(from: stored.epoch, at: stored.nextOffset) ?? 0
    check(
      offset >= min(least, asked[cursor] ?? 0),
      "\(client) begins at \(offset), where its cursor \(stored) is on disk")
  }

  /// Checks that every cursor is at its last commit. Call it when nothing is pending.
  func auditCursors() {
    for (name, offset) in asked {
      let place = cursors[name]?.found.place
      let found = place.flatMap { continued(from: $0.epoch, at: $0.nextOffset) }
      check(
        found == offset || doubtful.contains(name) && (found ?? 0) <= offset,
        "cursor \(name) is on disk at \(found as Any), where \(offset) was committed")
    }
  }
}
