import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// One subscription, from SUBSCRIBE to its last frame: checks the frames received against the request.
final class SubscriptionLedger {
  let request: Subscribe
  let peer: Int
  private unowned let oracle: Oracle

  private(set) var life: TopicEpoch?
  /// The next expected offset.
  private(set) var next: UInt64 = 0
  private(set) var liveOffset: UInt64 = 0
  private(set) var isLive = false
  /// The highest grant in any DEMAND sent.
  private(set) var granted: UInt64
  private(set) var delivered: UInt64 = 0
  private(set) var missed: UInt64 = 0
  private var time: Int64 = .min

  enum End {
    case completed
    case failed(ErrorCode)
    case cancelled
    case cutOff
  }

  /// Whether offsets may leave gaps. In that case `heard` and `gone` list the records received and dropped, for ``checkNewest()``.
  private(set) var gaps = false
  private(set) var heard: [UInt64] = []
  private(set) var gone: [LagNotice] = []
  /// Deletions that LAG reported as dropped. Records between them may still exist.
  private(set) var goneDeletions: [Range<UInt64>] = []
  private(set) var start: UInt64 = 0

  private(set) var end: End?
  private(set) var isCancelling = false

  /// The lag in SUBSCRIBED, which a LAG must follow as the next frame.
  private var initialLag: UInt64 = 0

  /// The topic's state when SUBSCRIBE was sent. The reply reflects a state between then and its arrival.
  private(set) var before: (epoch: UInt64, head: UInt64, lowest: UInt64, kept: UInt64)?

  init(_ request: Subscribe, peer: Int, oracle: Oracle) {
    self.request = request
    self.peer = peer
    self.oracle = oracle
    granted = request.grantedThrough
    if let topic = oracle.present(request.topic) {
      before = (
        topic.epochNumber, topic.log.head, topic.log.lowestForReturning, topic.kept(at: oracle.wallClock())
      )
    }
  }

  /// Whether no more frames are due: all available or all requested records have arrived.
  var isSatisfied: Bool {
    guard end == nil else { return true }
    guard let life, let topic = life.topic, !isCancelling, initialLag == 0 else { return false }
    if next >= liveOffset, !isLive { return false }
    if !request.filter.isEmpty { return isSatisfied(life, topic) }
    // A completion needs no demand.
    return next >= topic.log.head ? topic.condition == .open : delivered == granted && life.isPresent
  }

  /// The same for a filtered subscription. Filtered-out records use no demand.
  private func isSatisfied(_ life: TopicEpoch, _ topic: Topic) -> Bool {
    guard let wanted = life.firstWanted(by: request.filter, from: next) else {
      // It was at a record that was dropped since, and gets a LAG once it requests more.
      if life.wants(request.filter, from: next) != false, delivered == granted { return life.isPresent }
      return isLive && topic.condition == .open
    }
    // Likewise, it may be at a record, dropped since, between the last delivered one and `wanted`.
    let stands = (next..<max(next, min(wanted, liveOffset))).contains {
      life.wants(request.filter, at: $0) != false
    }
    if stands, delivered == granted { return life.isPresent }
    if wanted >= liveOffset, !isLive { return false }
    return delivered == granted && life.isPresent
  }

  /// Whether no published record is left that it wants; nil unless all of them are known.
  var hasAll: Bool? {
    guard let life, let head = life.head else { return false }
    if next >= head { return true }
    return request.filter.isEmpty ? false : life.wants(request.filter, from: next).map { !$0 }
  }

  /// Whether the topic keeps the newest record of each key.
  private var isCompact: Bool { gaps && request.filter.isEmpty }

  private var isFiltered: Bool { !request.filter.isEmpty }

  /// Checks that no skipped record was wanted.
  private func skip(to offset: UInt64, _ what: String) {
    guard offset > next else { return }
    if let oldest = life?.oldest, oldest <= next,
      let wanted = life?.firstWanted(by: request.filter, from: next), wanted < offset
    {
      fail("\(what) at \(offset), and \(wanted) is left out")
    }
    next = offset
  }

  var state: String {
    let head = life?.head.map(String.init) ?? "?"
    return
      "\(title): next \(next), live \(liveOffset)\(isLive ? "" : " not yet"), head \(head), \(delivered) of \(granted) delivered\(isCancelling ? ", cancelling" : "")"
  }

  private var title: String { "subscription to \(request.topic) (\(request.start))" }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { fail(what()) }
  }

  func fail(_ what: String) {
    oracle.fail(peer, "\(title), next \(next): \(what)")
  }

  /// Checks common to all frames of an open subscription.
  private func stands(_ what: String) -> Bool {
    guard life != nil else {
      fail("\(what) before SUBSCRIBED")
      return false
    }
    if let end {
      fail("\(what) after its end, \(end)")
      return false
    }
    if initialLag > 0 {
      fail("\(what) where a LAG of \(initialLag) had to follow SUBSCRIBED")
      initialLag = 0
    }
    return true
  }

  // MARK: What the subscriber does

  func grants(_ through: UInt64) {
    granted = max(granted, through)
  }

  func cancels() {
    isCancelling = true
  }

  // MARK: What it receives

  func subscribed(_ frame: Subscribed) {
    check(life == nil && end == nil, "SUBSCRIBED came twice")
    let life = oracle.life(of: request.topic, epoch: frame.epoch, client: peer)
    self.life = life
    next = frame.nextOffset
    start = next
    liveOffset = frame.liveOffset
    gaps = frame.gaps
    check(
      gaps == (life.topic?.settings.compact ?? gaps || !request.filter.isEmpty),
      "SUBSCRIBED with gaps \(gaps)")
    check(
      request.epoch == 0 || request.epoch == frame.epoch,
      "epoch \(frame.epoch) where \(request.epoch) was meant")
    check(next <= liveOffset, "SUBSCRIBED at \(next), live at \(liveOffset)")
    if let settings = life.topic?.settings {
      check(
        Oracle.holds(request.settings, in: settings), "states \(request.settings), the topic has \(settings)")
    }
    checkStart(life)
  }

  private func checkStart(_ life: TopicEpoch) {
    let before = before?.epoch == life.epoch ? before : nil
    let isResuming = request.epoch != 0
    let firstBefore = (isResuming ? before?.lowest : before?.kept) ?? 0
    let firstAfter = (isResuming ? life.lowestForReturning : life.firstKept) ?? .max
    let headBefore = before?.head ?? 0
    let headAfter = life.head ?? .max
    func inside(_ offset: UInt64, _ low: UInt64, _ high: UInt64) {
      check(low <= offset && offset <= high, "starts at \(offset), which isn't in \(low)...\(high)")
    }
    if case .offset(let offset) = request.start {
      // Replaced records aren't missed. ``checkNewest()`` checks whether missed records were really dropped.
      let last = isCompact ? liveOffset : firstAfter
      inside(next, max(offset, gaps ? 0 : firstBefore), max(offset, last))
      inside(liveOffset, max(headBefore, next), max(headAfter, next))
      if next > offset {
        check(request.lag == .skip, "starts with a lag, where it asked to fail")
        initialLag = next - offset
      }
      return
    }
    inside(liveOffset, headBefore, headAfter)
    switch request.start {
    case .new: check(next == liveOffset, "starts before what is new")
    case .last where gaps: inside(next, firstBefore, liveOffset)
    case .last(let count):
      inside(
        next, max(firstBefore, liveOffset - min(liveOffset, count)),
        max(firstAfter, liveOffset - min(liveOffset, count)))
    case .replay, .earliest:
      // Or at the last subscriber's position, in a topic whose producers continue without subscribers.
      inside(next, oracle.mayHaveBuffered(request.topic) ? 0 : firstBefore, min(firstAfter, liveOffset))
      if !gaps, let settings = life.topic?.settings, settings.replayAge == TopicSettings.unlimited,
        !isResuming, !life.hasChanged,
        settings.replayBytes == TopicSettings.unlimited, let limit = settings.replayRecords,
        !oracle.mayHaveBuffered(request.topic)
      {
        check(next == liveOffset - min(limit, liveOffset), "starts where \(limit) records are kept")
      }
    case .time: inside(next, min(firstBefore, liveOffset), liveOffset)
    case .offset: break
    }
  }

  func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    guard stands("DELIVER"), let life else { return }
    let count = UInt64(header.count)
    if isFiltered { skip(to: header.firstOffset, "DELIVER of \(count)") }
    check(isNext(header.firstOffset), "DELIVER of \(count) from \(header.firstOffset)")
    check(
      delivered + count <= granted,
      "\(delivered + count) records were delivered where \(granted) were granted")
    if isLive {
      check(header.firstOffset >= liveOffset, "a replayed record after LIVE")
    } else {
      check(header.firstOffset < liveOffset, "a record from \(liveOffset) on, before LIVE")
      check(header.firstOffset + count <= liveOffset, "a batch of \(count) across LIVE at \(liveOffset)")
    }
    var records = BatchIterator(batch, count: header.count, time: time)
    var offset = header.firstOffset
    do {
      while let record = try records.next() {
        check(record.time != .min, "record \(offset) has no time")
        check(record.time >= time, "record \(offset) is older than the one before")
        time = record.time
        check(request.filter.wants(record), "record \(offset), which isn't wanted")
        life.observe(record, at: offset, client: peer)
        offset += 1
      }
    } catch {
      fail("a malformed batch: \(error)")
    }
    delivered += count
    if gaps { heard += header.firstOffset..<header.firstOffset + count }
    next = header.firstOffset + count
  }

  private func isNext(_ offset: UInt64) -> Bool { offset == next || gaps && offset > next }

  func live(_ frame: Live) {
    guard stands("LIVE") else { return }
    check(!isLive, "LIVE came twice")
    if isFiltered { skip(to: frame.nextOffset, "LIVE") }
    check(frame.nextOffset >= liveOffset, "LIVE before \(liveOffset)")
    check(isNext(frame.nextOffset), "LIVE names \(frame.nextOffset)")
    next = frame.nextOffset
    isLive = true
  }

  func lag(_ frame: Lag) {
    if initialLag > 0 {
      check(
        frame.missed == initialLag && frame.nextOffset == next,
        "LAG of \(frame.missed) to \(frame.nextOffset) where \(initialLag) were missed from the start")
      noteGone(next - initialLag..<next)
      initialLag = 0
    } else {
      guard stands("LAG") else { return }
      check(frame.missed > 0, "LAG of nothing")
      check(life?.topic?.settings.flow != .lossless || gaps, "LAG in a lossless topic")
      // A LAG that doesn't move the offset concerns deletions.
      check(
        frame.nextOffset == next + frame.missed || gaps && frame.nextOffset == next
          || !request.filter.isEmpty && frame.nextOffset >= next
          // It may have skipped replaced records, up to a trimmed one.
          || gaps && life?.hasChanged == true && frame.nextOffset >= next + frame.missed,
        "LAG of \(frame.missed) to \(frame.nextOffset)")
      if frame.nextOffset > next {
        noteGone(next..<frame.nextOffset)
      } else if gaps {
        noteGoneDeletions(frame.missed)
      }
      check(request.lag == .skip, "LAG where it asked to fail")
      if let oldest = life?.oldest, !gaps {
        check(frame.nextOffset <= oldest, "LAG to \(frame.nextOffset), while the log has all from \(oldest)")
      }
      next = frame.nextOffset
    }
    missed += frame.missed
  }

  private func noteGone(_ offsets: Range<UInt64>) {
    gone.append(LagNotice(offsets: offsets, head: life?.head, wallClock: oracle.wallClock()))
  }

  /// A new subscriber gets no deletions in its replay, so they can't be missed there.
  private func noteGoneDeletions(_ count: UInt64) {
    let first = max(next, goneDeletions.last?.upperBound ?? (request.epoch == 0 ? liveOffset : 0))
    goneDeletions.append(first..<first + count)
  }

  func completed(_ frame: Complete) {
    guard stands("COMPLETE"), let life else { return }
    check(isLive, "COMPLETE before LIVE")
    let isBeyond =
      if case .offset(let offset) = request.start { offset == next && delivered == 0 } else { false }
    if isFiltered, let head = life.head { skip(to: max(head, next), "COMPLETE") }
    life.told(frame.ending, at: gaps ? nil : next, isBeyond: isBeyond, client: peer)
    end = .completed
  }

  func failed(_ fault: Fault) {
    check(end == nil, "ERROR after its end")
    switch fault.code {
    case .topicDeleted:
      check(
        oracle.deletedTopics.contains(request.topic), "told of a deletion, but no client deleted the topic")
      if let life { check(!life.isPresent, "topic-deleted, while the topic is there") }
    case .lagged:
      check(request.lag == .fail, "ERROR lagged, where it asked to skip")
      check(life?.topic?.settings.flow != .lossless || gaps, "ERROR lagged in a lossless topic")
      if let oldest = life?.oldest, !gaps {
        check(next < oldest, "ERROR lagged, while the log has all from \(oldest)")
      }
    case .epochChanged:
      check(life == nil && request.epoch != 0, "ERROR epoch-changed, out of season")
      check(
        oracle.present(request.topic)?.epochNumber != request.epoch, "epoch-changed, while it is the same")
    case .topicExists:
      check(
        life == nil && oracle.mayRefuse(request.settings, of: request.topic),
        "refused for its settings, which are the topic's")
    case .shuttingDown:
      check(life == nil && oracle.brokerIsStopping, "ERROR shutting-down, out of season")
    default: fail("ERROR \(fault.code): \(fault.message)")
    }
    end = .failed(fault.code)
  }

  func cancelled() {
    check(isCancelling, "CANCELLED without CANCEL")
    end = .cancelled
  }

  /// The connection was lost.
  func cutOff() {
    if end == nil { end = .cutOff }
  }
}

extension Topic {
  /// The oldest record in memory.
  var oldest: UInt64 { log.oldestOffset }

  /// The first record that a late subscriber gets at this time.
  func kept(at wallClock: Int64) -> UInt64 {
    epoch.newest?.statistics(now: wallClock).firstOffset ?? log.statistics(now: wallClock).firstOffset
  }
}
