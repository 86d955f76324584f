import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// The durable cursors and groups of a topic: counts and sums of all, and those with the largest lags.
public struct ConsumerSummary: Hashable, Sendable {
  public var cursors = 0
  public var groups = 0
  /// The number of cursors and groups with a lag.
  public var behind = 0
  /// Sums over the groups, as in `TopicInfo.Consumer`.
  public var unacknowledged: UInt64 = 0
  public var redeliveries: UInt64 = 0
  public var deadLetters: UInt64 = 0
  public var abandoned: UInt64 = 0
  public var missed: UInt64 = 0
  public var delayed: UInt64 = 0
  /// Those that were selected, all if none were.
  public var selected = 0
  /// At most as many cursors, and as many groups, as were requested: largest lag first.
  public var furthest: [TopicInfo.Consumer] = []

  public init() {}

  public var count: Int { cursors + groups }

  /// The largest lag in records.
  public var lag: UInt64 { furthest.first?.lag ?? 0 }

  /// The largest known backlog in bytes; nil if none is known.
  public var bytes: UInt64? { known(\.bytes) }

  /// The largest known age of a record in a backlog, in milliseconds; nil if none is known.
  public var age: UInt64? { known(\.age) }

  private func known(_ value: KeyPath<TopicInfo.Consumer, UInt64>) -> UInt64? {
    if furthest.isEmpty { return 0 }
    return furthest.map { $0[keyPath: value] }.filter { $0 != TopicInfo.Consumer.unknown }.max()
  }

  mutating func add(_ group: TopicInfo.Consumer) {
    groups += 1
    if group.lag > 0 { behind += 1 }
    unacknowledged &+= group.unacknowledged
    redeliveries &+= group.redeliveries
    deadLetters &+= group.deadLetters
    abandoned &+= group.abandoned
    missed &+= group.missed
    delayed &+= group.delayed
  }

  /// Adds the bytes and ages of the backlogs that are known without waiting for the store; the store looks up the others for the next time.
  ///
  /// - Parameter wallClock: the present time in milliseconds since 1970.
  package mutating func measure(in epoch: TopicEpoch, wallClock: Int64) {
    var missing: [UInt64] = []
    for index in furthest.indices {
      guard furthest[index].lag > 0 else {
        (furthest[index].bytes, furthest[index].age) = (0, 0)
        continue
      }
      let backlog = epoch.backlog(from: furthest[index].nextOffset)
      if !backlog.isExact { missing.append(furthest[index].nextOffset) }
      guard let (time, bytes) = backlog.found else { continue }
      furthest[index].bytes = bytes
      furthest[index].age = UInt64(max(wallClock - time, 0))
    }
    epoch.storage?.prepare(missing)
  }
}

extension TopicEpoch {
  /// The time of the first existing record at or after `offset`, and the bytes of records from there to the head; nil if unknown without waiting for the
  /// store.
  package func backlog(from offset: UInt64) -> (found: (time: Int64, bytes: UInt64)?, isExact: Bool) {
    if let (time, bytes) = log.backlog(from: offset) { return ((time, UInt64(bytes)), true) }
    guard let storage, newest == nil else {
      // Dropped records aren't part of the backlog.
      return (log.backlog(from: log.oldestOffset).map { ($0.time, UInt64($0.bytes)) }, true)
    }
    guard let (place, isExact) = storage.places.place(of: offset) else { return (nil, false) }
    return ((place.time, place.bytes + UInt64(log.bytes(from: place.end))), isExact)
  }
}

extension Topic {
  /// The next offsets of cursors and groups whose backlog isn't in memory: their places must be looked up in the store. From any thread.
  package func unmeasured(_ cursors: [CursorInfo]) -> [UInt64] {
    let epoch = epoch
    guard epoch.storage != nil, epoch.newest == nil else { return [] }
    return cursors.map(\.nextOffset).filter { $0 < epoch.log.head && !epoch.log.hasRecord($0) }
  }

  /// The cursors and groups with the bytes and ages of their backlogs, if these are known without waiting for the store. From any thread.
  ///
  /// - Parameters:
  ///   - cursors: a page of ``cursors(after:limit:now:)``.
  ///   - wallClock: the present time in milliseconds since 1970.
  package func measured(_ cursors: [CursorInfo], wallClock: Int64) -> [CursorInfo] {
    let epoch = epoch
    return cursors.map { cursor in
      var cursor = cursor
      guard cursor.nextOffset < epoch.log.head else {
        (cursor.bytes, cursor.age) = (0, 0)
        return cursor
      }
      guard let (time, bytes) = epoch.backlog(from: cursor.nextOffset).found else { return cursor }
      (cursor.bytes, cursor.age) = (bytes, UInt64(max(wallClock - time, 0)))
      return cursor
    }
  }

  /// The number of cursors visited under one lock of the topic.
  private static let visited = 1_000

  /// Counts the durable cursors and groups, and finds those with the largest lags. From any thread.
  ///
  /// Takes time in proportion to their number: tens of nanoseconds for a cursor, about 200 for a group. The topic's lock is held for 1,000 cursors at a time.
  ///
  /// - Parameters:
  ///   - limit: the most cursors, and the most groups, to list.
  ///   - cursors: the most cursors to list, if different from `limit`. A list of thousands among many takes more time for each.
  ///   - isSelected: whether to list a cursor or group of that name; nil for all. All are counted.
  ///   - now: the time by the broker's clock.
  package func consumers(
    atMost limit: Int, cursors: Int? = nil, selecting isSelected: ((String) -> Bool)? = nil,
    now: MonotonicTime
  ) -> ConsumerSummary {
    var summary = ConsumerSummary()
    var groups: [TopicInfo.Consumer] = []
    let (present, epoch) = state.withLock { (Array($0.groups.values), $0.epoch) }
    let bounds = ConsumerBounds(epoch)
    for group in present {
      let consumer = group.consumer(in: bounds, now: now)
      summary.add(consumer)
      guard isSelected?(consumer.name) ?? true else { continue }
      summary.selected += 1
      groups.append(consumer)
    }
    groups.sort(by: TopicInfo.Consumer.precedes)
    let furthest = furthestCursors(cursors ?? limit, isSelected, &summary, now: now)
    summary.furthest = (furthest + groups.prefix(max(limit, 0))).sorted(by: TopicInfo.Consumer.precedes)
    return summary
  }

  private func furthestCursors(
    _ limit: Int, _ isSelected: ((String) -> Bool)?, _ summary: inout ConsumerSummary, now: MonotonicTime
  ) -> [TopicInfo.Consumer] {
    var found: [TopicInfo.Consumer] = []
    var slot: Int? = 0
    while let from = slot {
      slot = state.withLock { state in
        let bounds = ConsumerBounds(state.epoch)
        return state.cursors.visit(from: from, atMost: Self.visited, now: now) { name, place, isUsed, since in
          let next = bounds.next(place.nextOffset, in: place.epoch, isUsed: isUsed)
          let lag = bounds.lag(from: next)
          summary.cursors += 1
          if lag > 0 { summary.behind += 1 }
          guard isSelected?(name) ?? true else { return }
          summary.selected += 1
          guard limit > 0, found.count < limit || lag > found[found.count - 1].lag else { return }
          let consumer = TopicInfo.Consumer(
            name: name, kind: .cursor, nextOffset: next, lag: lag, members: isUsed ? 1 : 0,
            idle: isUsed ? 0 : max((now - since).clampedMilliseconds, 1))
          if found.count == limit { found.removeLast() }
          found.insert(consumer, at: Self.place(of: consumer, in: found))
        }
      }
    }
    return found
  }

  /// The index at which a consumer belongs in a sorted list.
  private static func place(of consumer: TopicInfo.Consumer, in list: [TopicInfo.Consumer]) -> Int {
    var (low, high) = (0, list.count)
    while low < high {
      let middle = (low + high) / 2
      if TopicInfo.Consumer.precedes(consumer, list[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
