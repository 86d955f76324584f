import SluiceWire

/// What a topic still has, told from what was published and asked for, and from what the protocol says of trims and limits. The broker is never asked.
///
/// Where a broker may choose, as when a record is about to expire, the floor has a range.
struct FloorModel {
  struct Record {
    /// It was appended between these times.
    var earliest: Int64
    var latest: Int64
    var bytes: UInt64
    var key: String?
    var isDeletion = false
    /// The first record of its batch.
    var batch: UInt64
  }

  let isCompact: Bool
  /// Whether a store has the records, which drops whole batches and looks at their ages from time to time.
  let dropsBatches: Bool
  private(set) var limits = TopicSettings()
  private(set) var records: [Record] = []
  /// No reader gets anything before this that it wasn't sent already.
  private(set) var trimmedTo: UInt64 = 0
  /// Where the floor may be.
  private(set) var lowest: UInt64 = 0
  private(set) var highest: UInt64 = 0
  /// When the broker has looked at the ages of all records, at the latest.
  private(set) var startedAt: Int64 = .min

  /// A broker looks at the ages of records that rest so often, and needs a moment for what follows.
  private static let round: Int64 = 1_500

  init(_ settings: TopicSettings) {
    isCompact = settings.compact == true
    dropsBatches = settings.storage == .durable && !isCompact
    limits = settings
  }

  var head: UInt64 { UInt64(records.count) }

  // MARK: What happens

  mutating func publish(_ batch: [(bytes: UInt64, key: String?, isDeletion: Bool)], from: Int64, to: Int64) {
    // What has expired before is gone, also where newer records of its keys come now.
    raise(from: from, to: from, isStart: false)
    let first = head
    records += batch.map {
      Record(
        earliest: from, latest: to, bytes: $0.bytes, key: $0.key, isDeletion: $0.isDeletion, batch: first)
    }
    raise(from: from, to: to, isStart: false)
  }

  /// The topic is trimmed, with so many records left of a compact one where the limit is a number.
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

  /// Where a trim to so many newest records of keys ends; 0 where it takes none.
  private func compactEnd(_ count: UInt64, _ floor: UInt64) -> UInt64 {
    let kept = newest(from: floor)
    if count == 0 { return head }
    return UInt64(kept.count) > count ? kept[kept.count - Int(count)] : 0
  }

  /// The limits change: first the floor is where the former ones have it.
  mutating func set(_ settings: TopicSettings, from: Int64, to: Int64) {
    raise(from: from, to: to, isStart: true)
    if let records = settings.replayRecords { limits.replayRecords = records }
    if let bytes = settings.replayBytes { limits.replayBytes = bytes }
    if let age = settings.replayAge { limits.replayAge = age }
    raise(from: from, to: to, isStart: false)
  }

  /// Another broker has begun to serve what is on disk.
  mutating func restart(at time: Int64) {
    startedAt = time
    raise(from: time, to: time, isStart: false)
  }

  /// Time has passed, and the broker was asked for the floor, or for a figure that need not be younger than a round.
  mutating func raise(from: Int64, to: Int64, isStart: Bool) {
    let swept = isStart && !dropsBatches ? from : max(from - Self.round, min(startedAt, from))
    lowest = max(lowest, limitedFloor(above: lowest, at: swept, \.latest, isLowest: true))
    highest = max(highest, limitedFloor(above: highest, at: to, \.earliest, isLowest: false))
  }

  // MARK: The floor

  /// The first record that the limits keep at a time, going back from the newest for as long as each allows it.
  ///
  /// - Parameter isLowest: whether a store may keep a batch of which the limit of bytes, or of age, keeps no record for certain.
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
      // Of a batch it is known only how many bytes it has in all, and when its last record came.
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

  /// The newest record of each key from an offset on, as late subscribers of a compact topic get them.
  func newest(from floor: UInt64) -> [UInt64] {
    var seen: Set<String> = []
    var found: [UInt64] = []
    for offset in (0..<head).reversed() {
      guard let key = records[Int(offset)].key, seen.insert(key).inserted else { continue }
      if offset >= floor, !records[Int(offset)].isDeletion { found.append(offset) }
    }
    return found.reversed()
  }

  /// The floor as the limits alone would have it: for flaws.
  func limitsAlone(at now: Int64) -> UInt64 {
    max(trimmedTo, limitedFloor(above: 0, at: now, \.earliest, isLowest: false))
  }

  // MARK: What readers are owed

  /// Where a late subscriber may begin.
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

  /// Where a late subscriber may begin with a durable cursor that stands at one of these places.
  func start(at place: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
    max(place.lowerBound, min(lowest, head))...max(place.upperBound, min(highest, head))
  }

  /// Where a durable cursor may stand whose subscriber has committed all that it was sent.
  ///
  /// - Parameters:
  ///   - committed: the offset of that COMMIT, or where the subscription began.
  ///   - isOwed: whether the subscriber has no demand left. Otherwise the broker has looked at every record.
  func place(of committed: UInt64, isOwed: Bool) -> ClosedRange<UInt64> {
    guard isOwed else { return head...head }
    guard isCompact else { return committed...committed }
    // The broker may have looked up to the next record that it would send.
    return committed...max(committed, newest(from: max(committed, highest)).first ?? head)
  }

  /// The records that are behind one of these places for a reader that comes.
  func lag(from place: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
    (head - min(max(place.upperBound, highest), head))...(head - min(max(place.lowerBound, lowest), head))
  }
}
