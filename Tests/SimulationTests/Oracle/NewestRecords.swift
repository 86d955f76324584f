import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

// Guarantees of topics that keep the newest record of each key, checked against the published records and the topic's settings.

/// A notice to a subscriber that records were dropped.
struct LagNotice {
  var offsets: Range<UInt64>
  /// The topic's head at that time; nil if it no longer existed.
  var head: UInt64?
  /// The wall-clock time of the notice.
  var wallClock: Int64
}

extension TopicEpoch {
  /// Whether the topic keeps the newest record of each key.
  var isCompact: Bool { topic?.settings.compact == true }

  /// The offset of the newest record of each key; nil unless all relevant records are known.
  func newest(from start: UInt64) -> [[UInt8]: UInt64]? {
    var newest: [[UInt8]: UInt64] = [:]
    guard start <= reached else { return newest }
    for offset in start..<reached {
      guard let key = record(at: offset)?.key else { return nil }
      newest[key] = offset
    }
    return newest
  }

  /// Whether the limits may have dropped the record at `offset` by the time and head of the notice, while it was the newest of its key.
  ///
  /// True if too little is known of it or of later records.
  func mayBeBeyondLimits(_ offset: UInt64, at notice: LagNotice) -> Bool {
    guard let settings = topic?.settings, let first = record(at: offset), !hasChanged else { return true }
    let age = Int64(clamping: settings.replayAge ?? TopicSettings.unlimited)
    if age < .max, notice.wallClock - first.wallClock >= age { return true }
    var newer: [[UInt8]: Int] = [:]
    var bytes = 0
    for offset in offset..<max(offset, min(reached, notice.head ?? .max)) {
      guard let record = record(at: offset), let key = record.key else { return true }
      if key == first.key, !newer.isEmpty { return false }
      bytes -= newer.removeValue(forKey: key) ?? 0
      if !record.isDeletion {
        newer[key] = record.bytes
        bytes += record.bytes
      }
      if UInt64(newer.count) > settings.replayRecords ?? .max { return true }
      if UInt64(bytes) > settings.replayBytes ?? .max { return true }
    }
    return false
  }

  /// The first record from `offset` on that the subscriber has yet to get: the newest record of a key. Deletions count only from `followed` on, from
  /// which offset at the latest it receives every record. Nil if no such record is known.
  func firstOwed(from offset: UInt64, following followed: UInt64) -> UInt64? {
    guard let head else { return nil }
    readLog()
    guard offset < min(head, reached) else { return nil }
    var replaced: Set<[UInt8]> = []
    var owed: UInt64?
    for offset in (offset..<min(head, reached)).reversed() {
      guard let record = record(at: offset), let key = record.key else { continue }
      guard replaced.insert(key).inserted else { continue }
      if !record.isDeletion || offset >= followed { owed = offset }
    }
    return owed
  }

  /// Reads the newest records directly, as a last subscriber.
  func auditNewest() {
    guard let records = topic?.epoch.newest, let head else { return }
    var shown: [UInt64] = []
    let walk = records.walk(from: records.statistics().firstOffset, before: head + 1, deletionsFrom: .max) {
      var records = BatchIterator($0.item, count: 1, time: $0.time)
      if let record = try? records.next() { observe(record, at: $0.offset, client: 0) }
      shown.append($0.offset)
      return true
    }
    check(walk == .finished, "the newest records of \(name) can't be read: \(walk)")
    let kept = records.statistics(now: nil).firstOffset
    guard let newest = newest(from: kept) else { return }
    let wanted = newest.values.filter { record(at: $0)?.isDeletion == false }
    check(Set(wanted) == Set(shown), "\(name) keeps \(shown), where \(wanted.sorted()) are the newest")
  }
}

extension SubscriptionLedger {
  /// Checks, when nothing is pending, that a subscription with gaps missed no newest record, and that its replay contained no record already
  /// replaced.
  func checkNewest() {
    guard gaps, request.filter.isEmpty, let life else { return }
    for notice in gone where !notice.offsets.isEmpty { check(notice, in: life) }
    let isNew = request.epoch == 0
    let headBefore = before?.epoch == life.epoch ? before?.head ?? 0 : 0
    for offset in heard where offset < liveOffset {
      guard let record = life.record(at: offset) else { continue }
      if isNew, record.isDeletion { fail("replay has the deletion \(offset)") }
      guard headBefore > offset + 1 else { continue }
      if (offset + 1..<headBefore).contains(where: { life.record(at: $0)?.key == record.key }) {
        fail("replay has record \(offset), which was replaced before it subscribed at \(headBefore)")
      }
    }
    guard end == nil || life.ending != nil, let newest = life.newest(from: start) else { return }
    // A crashed broker may have accepted unseen records that replaced any of these.
    guard life.head != nil else { return }
    let heard = Set(heard)
    for (key, offset) in newest where offset < next && !heard.contains(offset) {
      if gone.contains(where: { $0.offsets.contains(offset) }) { continue }
      if life.record(at: offset)?.isDeletion == true {
        if isNew, offset < liveOffset { continue }
        if goneDeletions.contains(where: { $0.contains(offset) }) { continue }
      }
      fail("missed record \(offset), the newest of \(String(decoding: key, as: UTF8.self))")
    }
  }

  /// Checks that a lag has a reason: the limits dropped records in the range, and retain none of them.
  private func check(_ notice: LagNotice, in life: TopicEpoch) {
    guard let head = notice.head else { return }
    let dropped = notice.offsets.filter { life.mayBeBeyondLimits($0, at: notice) }
    if dropped.isEmpty { fail("was told that \(notice.offsets) are gone, all of which the limits keep") }
    let all = Set(dropped)
    var replaced: Set<[UInt8]> = []
    for offset in (notice.offsets.lowerBound..<head).reversed() {
      guard let record = life.record(at: offset), let key = record.key else { return }
      guard replaced.insert(key).inserted, notice.offsets.contains(offset) else { continue }
      if record.isDeletion || all.contains(offset) { continue }
      fail("was told that \(notice.offsets) are gone, and the limits keep \(offset)")
    }
  }
}
