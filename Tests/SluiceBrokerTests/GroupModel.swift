import SluiceIO
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// The specification of a group in its simplest form: a list of all records with their states, searched from the front each time.
struct GroupModel {
  enum Place: Equatable {
    case unseen
    case out(member: Int, until: UInt64)
    case due
    case delayed(until: UInt64)
    case waiting
    case deadLetter
    case done
  }

  struct Record {
    var key: UInt64?
    var isWanted = true
    var place = Place.unseen
    var deliveries: UInt32 = 0
  }

  let rules: GroupState.Rules
  let limit: Int
  var records: [Record] = []
  var room: [Int: UInt64] = [:]
  var line: [Int] = []
  var given: [GroupState.Assignment] = []
  var dropped: UInt64 = 0
  /// How often each record was completed: at most once.
  var ends: [Int] = []

  init(_ rules: GroupState.Rules, limit: Int) {
    self.rules = rules
    self.limit = limit
  }

  mutating func publish(key: UInt64?, isWanted: Bool) {
    records.append(Record(key: key, isWanted: isWanted))
    ends.append(0)
  }

  var frontier: Int { records.firstIndex { $0.place == .unseen } ?? records.count }

  var floor: Int { records.firstIndex { $0.place != .done } ?? records.count }

  private var underWay: Int { records.count { $0.place != .done && $0.place != .unseen } }

  private mutating func finish(_ offset: Int) {
    records[offset].place = .done
    ends[offset] += 1
    guard rules.isOrdered, let key = records[offset].key,
      let next = records.firstIndex(where: { $0.key == key && $0.place == .waiting })
    else { return }
    records[next].place = .due
  }

  private mutating func give(_ offset: Int, now: UInt64) {
    let member = line.removeFirst()
    records[offset].deliveries += 1
    let time = rules.deadline.map { now + UInt64($0.clampedNanoseconds) } ?? .max
    records[offset].place = .out(member: member, until: time)
    given.append(
      GroupState.Assignment(
        member: member, first: UInt64(offset), count: 1, delivery: records[offset].deliveries))
    room[member]! -= 1
    if room[member]! > 0 { line.append(member) }
    if !rules.isExplicit { records[offset].place = .out(member: member, until: .max) }
  }

  mutating func distribute(now: UInt64) {
    while true {
      while frontier < records.count, !records[frontier].isWanted {
        ends[frontier] += 1
        records[frontier].place = .done
      }
      guard !line.isEmpty else { return }
      if let offset = records.firstIndex(where: { $0.place == .due }) {
        give(offset, now: now)
        continue
      }
      let offset = frontier
      guard offset < records.count, !rules.isExplicit || underWay < limit else { return }
      let key = records[offset].key
      if rules.isOrdered, let key,
        records[..<offset].contains(where: { $0.key == key && $0.place != .done })
      {
        records[offset].place = .waiting
      } else {
        give(offset, now: now)
      }
    }
  }

  mutating func setRoom(_ count: UInt64, of member: Int) {
    room[member] = count
    if count == 0 {
      line.removeAll { $0 == member }
    } else if !line.contains(member) {
      line.append(member)
    }
  }

  /// - Parameter unsent: the offsets that were never sent to the member.
  mutating func leave(_ member: Int, unsent: Set<UInt64>) {
    line.removeAll { $0 == member }
    room[member] = nil
    for offset in records.indices {
      guard case .out(member, _) = records[offset].place else { continue }
      if unsent.contains(UInt64(offset)) {
        records[offset].place = .due
        records[offset].deliveries -= 1
      } else if rules.isExplicit {
        takeBack(offset, after: 0, now: 0)
      }
    }
  }

  /// With automatic acknowledgement, completes the record.
  mutating func sent(_ offset: UInt64) { finish(Int(offset)) }

  /// - Parameter delay: in milliseconds.
  private mutating func takeBack(_ offset: Int, after delay: UInt32, now: UInt64) {
    if rules.deliveries > 0, records[offset].deliveries >= rules.deliveries { return deadLetter(offset) }
    records[offset].place = delay == 0 ? .due : .delayed(until: now + UInt64(delay) * 1_000_000)
  }

  /// The group's own delay of a record, in milliseconds.
  private func backoff(_ offset: Int) -> UInt32 {
    var delay = rules.retryBackoff.first
    for _ in 1..<max(records[offset].deliveries, 1) { delay = min(delay * 2, rules.retryBackoff.longest) }
    return delay
  }

  var delayed: Int {
    records.count { if case .delayed = $0.place { true } else { false } }
  }

  /// When the next delay ends; nil without any.
  var nextRetry: UInt64? {
    records.compactMap { if case .delayed(let until) = $0.place { until } else { nil } }.min()
  }

  private mutating func deadLetter(_ offset: Int) {
    guard rules.hasDeadLetters else {
      dropped += 1
      return finish(offset)
    }
    records[offset].place = .deadLetter
  }

  mutating func settle(_ frame: Settle, now: UInt64) {
    for offset in frame.firstOffset..<frame.firstOffset + UInt64(frame.count) {
      let offset = Int(offset)
      guard offset < records.count, records[offset].deliveries == frame.delivery else { continue }
      switch (records[offset].place, frame.verdict) {
      case (.out, .acknowledge), (.due, .acknowledge), (.delayed, .acknowledge), (.deadLetter, .acknowledge):
        finish(offset)
      case (.out, .retry):
        takeBack(offset, after: frame.delay == Settle.byBackoff ? backoff(offset) : frame.delay, now: now)
      case (.out, .reject), (.due, .reject), (.delayed, .reject): deadLetter(offset)
      case (.out(let member, _), .extend):
        guard let deadline = rules.deadline else { continue }
        records[offset].place = .out(member: member, until: now + UInt64(deadline.clampedNanoseconds))
      default: break
      }
    }
  }

  mutating func expire(now: UInt64) {
    for offset in records.indices {
      switch records[offset].place {
      case .out(_, let until) where until <= now: takeBack(offset, after: backoff(offset), now: now)
      default: break
      }
      if case .delayed(let until) = records[offset].place, until <= now { records[offset].place = .due }
    }
  }

  mutating func deadLetterDone(_ offset: UInt64) { finish(Int(offset)) }
}
