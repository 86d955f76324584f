import SluiceLog
import SluiceWire

@testable import SluiceBroker

// What is promised of topics that keep the newest record of each key.

extension TopicLife {
  /// The offset of the newest record of each key, as far as all that matter are known; nil otherwise.
  func newest(from start: UInt64) -> [[UInt8]: UInt64]? {
    var newest: [[UInt8]: UInt64] = [:]
    guard start <= reached else { return newest }
    for offset in start..<reached {
      guard let key = record(at: offset)?.key else { return nil }
      newest[key] = offset
    }
    return newest
  }

  /// Reads the newest records themselves, as a last subscriber.
  func auditNewest() {
    guard let records = topic?.life.newest, let head else { return }
    var shown: [UInt64] = []
    let walk = records.walk(from: records.statistics().firstOffset, before: head + 1, deletionsFrom: .max) {
      var records = BatchIterator($0.item, count: 1, time: $0.time)
      if let record = try? records.next() { observe(record, at: $0.offset, who: 0) }
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
  /// Checks, when nothing happens any more, that a subscription with gaps missed nothing that counts, and that its replay had nothing
  /// that was replaced already.
  func checkNewest() {
    guard gaps, request.filter.isEmpty, let life else { return }
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
    let heard = Set(heard)
    for (key, offset) in newest where offset < next && !heard.contains(offset) {
      if gone.contains(where: { $0.contains(offset) }) { continue }
      if isNew, offset < liveOffset, life.record(at: offset)?.isDeletion == true { continue }
      fail("missed record \(offset), the newest of \(String(decoding: key, as: UTF8.self))")
    }
  }
}
