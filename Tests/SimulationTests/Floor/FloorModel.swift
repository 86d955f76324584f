import SluiceWire

/// The expected contents of a topic, derived from the requests made and the protocol's rules on trims and limits. It never asks the broker.
///
/// If the broker has a choice, for example while a record is about to expire, the floor is a range.
struct FloorModel {
  struct Record {
    /// The bounds of its timestamp.
    var earliest: Int64
    var latest: Int64
    var bytes: UInt64
    var key: String?
    var isDeletion = false
    /// The offset of the first record of its batch.
    var batch: UInt64
  }

  let isCompact: Bool
  /// Whether the records are in a store, which drops whole batches and checks their ages periodically.
  let dropsBatches: Bool
  private(set) var limits = TopicSettings()
  private(set) var records: [Record] = []
  /// No reader gets a record before this offset that wasn't sent to it already.
  private(set) var trimmedTo: UInt64 = 0
  /// The bounds of the floor.
  private(set) var lowest: UInt64 = 0
  private(set) var highest: UInt64 = 0
  /// The latest time at which the broker has checked the ages of all records.
  private(set) var startedAt: Int64 = .min

  /// The interval, in milliseconds, at which a broker checks the ages of records, plus time for the consequences.
  private static let round: Int64 = 1_500

  init(_ settings: TopicSettings) {
    isCompact = settings.compact == true
    dropsBatches = settings.storage == .durable && !isCompact
    limits = settings
  }

  var head: UInt64 { UInt64(records.count) }

  // MARK: What happens

  mutating func publish(_ batch: [(bytes: UInt64, key: String?, isDeletion: Bool)], from: Int64, to: Int64) {
    // Records that have already expired stay dropped, even if newer records of their keys arrive.
    raise(from: from, to: from, isStart: false)
    let first = head
    records += batch.map {
      Record(
        earliest: from, latest: to, bytes: $0.bytes, key: $0.key, isDeletion: $0.isDeletion, batch: first)
    }
    raise(from: from, to: to, isStart: false)
  }

  /// Trims the topic. For a compacted topic, a numeric limit is the number of records left.
  mutating func trim(_ limit: TopicTrim.Limit, from: Int64, to: Int64) {
    raise(from: from, to: to, isStart: false)
    let ends: (lowest: UInt64, highest: UInt64)
    switch limit {
    case .from(let offset): ends = (offset, offset)
    case .newest(let count) where isCompact: ends = (compactEnd(count, lowest), compactEnd(count, highest))
    case .newest(let count): ends = (head - min(count, head), head - min(count, head))
    }
    trimmedTo = max(trimmedTo, ends.lowest)
    lowest = max(lowest, ends.lowest)
    highest = max(highest, ends.highest)
  }

  /// The offset at which a trim to the newest `count` keys ends; 0 if it removes nothing.
  private func compactEnd(_ count: UInt64, _ floor: UInt64) -> UInt64 {
    let kept = newest(from: floor)
    if count == 0 { return head }
    return UInt64(kept.count) > count ? kept[kept.count - Int(count)] : 0
  }

  /// Changes the limits, after raising the floor by the former ones.
  mutating func set(_ settings: TopicSettings, from: Int64, to: Int64) {
    raise(from: from, to: to, isStart: true)
    if let records = settings.replayRecords { limits.replayRecords = records }
    if let bytes = settings.replayBytes { limits.replayBytes = bytes }
    if let age = settings.replayAge { limits.replayAge = age }
    raise(from: from, to: to, isStart: false)
  }

  /// Another broker serves the records on disk.
  mutating func restart(at time: Int64) {
    startedAt = time
    raise(from: time, to: time, isStart: false)
  }

  /// Raises the floor after time has passed and the broker has computed it exactly, or reported a figure that may be one pass old.
  mutating func raise(from: Int64, to: Int64, isStart: Bool) {
    let swept = isStart && !dropsBatches ? from : max(from - Self.round, min(startedAt, from))
    lowest = max(lowest, limitedFloor(above: lowest, at: swept, \.latest, isLowest: true))
    highest = max(highest, limitedFloor(above: highest, at: to, \.earliest, isLowest: false))
  }

  // MARK: The floor

  /// The first record that the limits retain at a time, counted back from the newest.
  ///
  /// - Parameter isLowest: whether a store may keep a batch although its limit of bytes or of age certainly retains none of its records.
  private func limitedFloor(
    above floor: UInt64, at now: Int64, _ time: KeyPath<Record, Int64>, isLowest: Bool
  ) -> UInt64 {
    let kept = isCompact ? newest(from: floor) : Array(min(floor, head)..<head)
    let drops = dropsBatches && isLowest
    var (count, bytes) = (UInt64(0), UInt64(0))
    var first = floor
    for offset in kept.reversed() {
      let record = records[Int(offset)]
      count += 1
      bytes += record.bytes
      if count > limits.replayRecords ?? .max { return max(first, offset + 1) }
      guard first == floor else { continue }
      // For a batch only its total bytes and the timestamp of its last record are known.
      if bytes > limits.replayBytes ?? .max {
        first = max(first, drops ? record.batch : offset + 1)
        if !drops { return first }
      } else if isExpired(record[keyPath: time], at: now) {
        return max(first, offset + 1)
      }
    }
    return first
  }

  private func isExpired(_ time: Int64, at now: Int64) -> Bool {
    guard let age = limits.replayAge, age < UInt64(Int64.max) else { return false }
    return now > time && now - time > Int64(age)
  }

  /// The newest record of each key from an offset on, as delivered to late subscribers of a compacted topic.
  func newest(from floor: UInt64) -> [UInt64] {
    var seen: Set<String> = []
    var found: [UInt64] = []
    for offset in (0..<head).reversed() {
      guard let key = records[Int(offset)].key, seen.insert(key).inserted else { continue }
      if offset >= floor, !records[Int(offset)].isDeletion { found.append(offset) }
    }
    return found.reversed()
  }

  /// The floor by the limits alone, for planted faults.
  func limitsAlone(at now: Int64) -> UInt64 {
    max(trimmedTo, limitedFloor(above: 0, at: now, \.earliest, isLowest: false))
  }

  // MARK: What readers must get

  /// The offsets at which a late subscriber may start.
  func start(_ start: Subscribe.Start) -> ClosedRange<UInt64> {
    let (low, high) = (place(start, above: lowest, \.latest), place(start, above: highest, \.earliest))
    return min(low, high)...max(low, high)
  }

  private func place(_ start: Subscribe.Start, above floor: UInt64, _ time: KeyPath<Record, Int64>) -> UInt64
  {
    let kept = isCompact ? newest(from: floor) : Array(min(floor, head)..<head)
    return switch start {
    case .replay, .earliest: kept.first ?? head
    case .new: head
    case .last(let count): count == 0 ? head : kept.suffix(Int(clamping: count)).first ?? head
    case .offset(let offset): max(offset, min(floor, head))
    case .time(let wanted): kept.first { records[Int($0)][keyPath: time] >= wanted } ?? head
    }
  }

  /// The offsets at which a late subscriber may start with a durable cursor in the range `place`.
  func start(at place: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
    max(place.lowerBound, min(lowest, head))...max(place.upperBound, min(highest, head))
  }

  /// The possible positions of a durable cursor whose subscriber has committed every delivered record.
  ///
  /// - Parameters:
  ///   - committed: the offset of that COMMIT, or where the subscription started.
  ///   - isOwed: whether the subscriber has no demand left. Otherwise the broker has scanned every record.
  func place(of committed: UInt64, isOwed: Bool) -> ClosedRange<UInt64> {
    guard isOwed else { return head...head }
    guard isCompact else { return committed...committed }
    // The broker may have scanned up to the next record to send.
    return committed...max(committed, newest(from: max(committed, highest)).first ?? head)
  }

  /// The lag of a late reader at one of these positions.
  func lag(from place: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
    (head - min(max(place.upperBound, highest), head))...(head - min(max(place.lowerBound, lowest), head))
  }
}
