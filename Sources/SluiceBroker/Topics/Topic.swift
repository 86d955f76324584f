import SluiceLog
import SluiceWire
import Synchronization

/// One named, totally ordered log of records with at most one terminal event.
///
/// Shared by all loops. Appending and ending take one short lock, once per batch; reading takes none: readers follow the log's
/// head and `condition`. What is attached on a loop hangs on that loop's ``TopicTap``.
final class Topic: Sendable {
  enum Condition: UInt8, AtomicRepresentable {
    case open
    /// The terminal event stands; there will be no more records.
    case ended
    case deleted
  }

  enum AppendResult {
    case appended(lastOffset: UInt64)
    case refused(Fault)
  }

  private struct State {
    var ending: Complete.Ending?
    var isDeleted = false
    /// One per loop on which somebody is attached.
    var taps: [TopicTap] = []
  }

  let name: String
  let epoch: UInt64
  /// Complete: no setting is nil.
  let settings: TopicSettings
  let log: TopicLog
  /// How many are attached, on all loops together.
  let subscriptions = Atomic<Int>(0)
  let publications = Atomic<Int>(0)

  private let atomicCondition = Atomic(Condition.open)
  private let state = Mutex(State())

  init(name: String, epoch: UInt64, settings: TopicSettings, pool: SegmentPool) {
    self.name = name
    self.epoch = epoch
    self.settings = settings
    log = TopicLog(retention: settings.retention, pool: pool)
  }

  /// Whether more can come. Once it says no, the log's head is final: read this first, then the head.
  var condition: Condition { atomicCondition.load(ordering: .acquiring) }

  /// The terminal event, once there is one.
  var ending: Complete.Ending? { state.withLock { $0.ending } }

  /// Appends a checked batch and wakes whoever waits for it. From any loop.
  func append(_ batch: UnsafeRawBufferPointer, count: UInt32, at milliseconds: Int64) -> AppendResult {
    let (result, taps): (AppendResult, [TopicTap]) = state.withLock { state in
      if let fault = Self.refusal(state, name) { return (.refused(fault), []) }
      let first = log.append(batch, count: Int(count), at: milliseconds)
      return (.appended(lastOffset: first + UInt64(count) - 1), state.taps)
    }
    for tap in taps { tap.wake() }
    return result
  }

  /// Sets the terminal event, after all records appended so far. From any loop.
  ///
  /// - Returns: why not, when the topic is over already.
  func end(_ ending: Complete.Ending) -> Fault? {
    let (refusal, taps): (Fault?, [TopicTap]) = state.withLock { state in
      if let fault = Self.refusal(state, name) { return (fault, []) }
      state.ending = ending
      atomicCondition.store(.ended, ordering: .releasing)
      return (nil, state.taps)
    }
    for tap in taps { tap.wake() }
    return refusal
  }

  /// Ends everybody's attachment and drops the records. From any loop; the registry has forgotten the topic already.
  func delete() {
    let taps = state.withLock { state in
      state.isDeleted = true
      atomicCondition.store(.deleted, ordering: .releasing)
      return state.taps
    }
    log.removeAll()
    for tap in taps { tap.wake() }
  }

  /// Why nothing can be published, if so.
  var refusal: Fault? { state.withLock { Self.refusal($0, name) } }

  private static func refusal(_ state: State, _ name: String) -> Fault? {
    if state.isDeleted { return Fault(code: .topicDeleted, message: "topic \(name) was deleted") }
    guard let ending = state.ending else { return nil }
    let how =
      switch ending {
      case .finished: "has finished"
      case .failure(_, let message): "has failed (\(message))"
      }
    return Fault(
      code: .topicEnded, message: "topic \(name) \(how); delete it to start it anew, or publish to another")
  }

  // MARK: Taps

  /// The tap of `loop` on this topic, made on first use. On that loop only.
  func tap(on loop: LoopContext) -> TopicTap {
    state.withLock { state in
      if let tap = state.taps.first(where: { $0.loop === loop }) { return tap }
      let tap = TopicTap(topic: self, loop: loop)
      state.taps.append(tap)
      return tap
    }
  }

  /// Forgets a tap on which nobody is attached any more. On its loop only.
  func remove(_ tap: TopicTap) {
    state.withLock { state in state.taps.removeAll { $0 === tap } }
  }

  /// The taps of this moment, for looking at who is attached. From any loop.
  var taps: [TopicTap] { state.withLock { $0.taps } }
}

extension Topic {
  /// The topic in a few numbers. From any loop; each number is of some moment during the call.
  var summary: TopicSummary {
    let statistics = log.statistics()
    return TopicSummary(
      topic: name, epoch: epoch, firstOffset: statistics.firstOffset, nextOffset: statistics.head,
      bytes: UInt64(statistics.bytes), ending: ending,
      subscriptions: UInt32(clamping: subscriptions.load(ordering: .relaxed)),
      publications: UInt32(clamping: publications.load(ordering: .relaxed)))
  }
}

extension TopicSettings {
  var retention: Retention {
    func limit(_ value: UInt64?) -> UInt64? { value == Self.unlimited ? nil : value }
    return Retention(
      records: limit(replayRecords), bytes: limit(replayBytes),
      ageMilliseconds: limit(replayAge).map { Int64(clamping: $0) })
  }

  /// These settings, with what they leave open taken from `defaults`.
  func completed(by defaults: TopicSettings) -> TopicSettings {
    TopicSettings(
      replayRecords: replayRecords ?? defaults.replayRecords ?? Self.unlimited,
      replayBytes: replayBytes ?? defaults.replayBytes ?? Self.unlimited,
      replayAge: replayAge ?? defaults.replayAge ?? Self.unlimited)
  }
}
