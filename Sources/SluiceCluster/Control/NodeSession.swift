import SluiceIO

/// The lease under which a node owns all its shards. A value without a clock: its input is events, its output the actions to take.
///
/// A session begins with a message on the node's subject and lasts as long as each message there expects the one before: a message of another
/// process ends it. Renewing one message keeps all shards, however many there are.
struct NodeSession: Hashable, Sendable {
  enum Phase: Hashable, Sendable {
    /// Not a member; joins as soon as no other process of the same name is live.
    case outside
    /// `validUntil`: until when the node may rely on its lease.
    case member(session: UInt64, validUntil: MonotonicTime)
    /// It has left for good.
    case left
  }

  enum Change: Hashable, Sendable {
    case joined(UInt64)
    /// The lease couldn't be renewed in time. It may still be held.
    case suspended
    /// The lease is still held, as the engine has confirmed.
    case resumed
    /// Another node has ended the session.
    case lost(by: String?)
    case left
  }

  private(set) var phase = Phase.outside
  private(set) var isSuspended = false
  /// Whether the node is about to leave.
  var isLeaving = false
  private let writer: UInt64
  private let times: LeaseTimes
  /// When each renewal with an unknown result, and the last stored one, was sent, by number.
  private var sent: [UInt64: MonotonicTime] = [:]
  private var nextRenewal: MonotonicTime?

  init(writer: UInt64, times: LeaseTimes) {
    self.writer = writer
    self.times = times
  }

  var session: UInt64? {
    if case .member(let session, _) = phase { return session }
    return nil
  }

  /// Until when the node relies on its lease; nil outside of a session.
  var leaseEnd: MonotonicTime? {
    if case .member(_, let end) = phase { return end }
    return nil
  }

  /// Whether the node relies on its lease.
  func isValid(at now: MonotonicTime) -> Bool {
    if case .member(_, let end) = phase { return now < end }
    return false
  }

  /// The state that the next message must have; nil if none is due.
  ///
  /// - Parameter entry: the last known message on the node's subject.
  func wantedState(_ entry: NodeEntry?, hasShards: Bool, at now: MonotonicTime) -> NodeRecord.State? {
    switch phase {
    case .left: return nil
    case .outside:
      guard !isLeaving else { return nil }
      // A former process of this name, or another one by mistake: its lease must expire first.
      if let entry, entry.isLive, entry.record.writer != writer, now < entry.heard + times.lease {
        return nil
      }
      return .live
    case .member:
      if isLeaving, !hasShards { return .ended }
      let state = isLeaving ? NodeRecord.State.leaving : .live
      if entry?.record.state != state { return state }
      return nextRenewal.map { $0 <= now } ?? true ? state : nil
    }
  }

  /// The times at which ``wantedState(_:hasShards:at:)`` or ``expire(at:)`` may have another result.
  func deadlines(_ entry: NodeEntry?) -> [MonotonicTime] {
    switch phase {
    case .left: []
    case .outside: entry.map { [$0.heard + times.lease] } ?? []
    case .member(_, let end): [end, nextRenewal].compactMap { $0 }
    }
  }

  mutating func sending(_ number: UInt64, at now: MonotonicTime) {
    sent[number] = now
    nextRenewal = now + times.renewal
  }

  /// Handles a new last message on the node's subject: this process's own, another one's, or none.
  ///
  /// - Parameter record: nil when the message was removed.
  mutating func observed(_ record: NodeRecord?, at now: MonotonicTime) -> [Change] {
    guard let record else {
      // While the lease is valid, no other node can have ended the session: the engine has removed the message by its own clock.
      guard case .member = phase, !isValid(at: now) else { return [] }
      return lose(by: nil)
    }
    switch phase {
    case .left: return []
    case .outside:
      guard record.writer == writer, record.state != .ended, let time = sent[record.count],
        record.session > 0
      else { return [] }
      phase = .member(session: record.session, validUntil: time + times.belief)
      isSuspended = false
      forget(upTo: record.count)
      return [.joined(record.session)]
    case .member(let session, let end):
      guard record.writer == writer, record.session == session else { return lose(by: record.endedBy) }
      if record.state == .ended {
        phase = .left
        return [.left]
      }
      // The lease began when the message was sent, at the earliest.
      guard let time = sent[record.count] else { return [] }
      phase = .member(session: session, validUntil: max(end, time + times.belief))
      forget(upTo: record.count)
      guard isSuspended, isValid(at: now) else { return [] }
      isSuspended = false
      return [.resumed]
    }
  }

  private mutating func forget(upTo number: UInt64) {
    for key in sent.keys where key < number { sent[key] = nil }
  }

  private mutating func lose(by node: String?) -> [Change] {
    phase = .outside
    isSuspended = false
    sent = [:]
    nextRenewal = nil
    return [.lost(by: node)]
  }

  /// Suspends the session if the lease has expired.
  mutating func expire(at now: MonotonicTime) -> [Change] {
    guard case .member(_, let end) = phase, now >= end, !isSuspended else { return [] }
    isSuspended = true
    return [.suspended]
  }
}
