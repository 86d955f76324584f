import SluiceIO
import SluiceSession
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// Passes any bytes to the broker's decoders, as input from peers and from its disk.
enum BrokerProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte that selects the kind of stored value, then its bytes.
    case storedValues
    /// Frames to a session, and the broker's own actions on it: see ``SessionModel``.
    case sessions
    /// Frames of several clients to a whole broker: see ``BrokerScene``.
    case brokers
    /// Frames of another node, on the links of a broker that relays streams: see ``RelayScene``.
    case links
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    switch target {
    case .storedValues: try storedValue(bytes)
    case .sessions: try SessionModel.play(ProbeInput(bytes))
    case .brokers: try BrokerScene.play(ProbeInput(bytes))
    case .links: try RelayScene.play(ProbeInput(bytes))
    }
  }

  /// A decoded value must be the same after encoding and decoding it again.
  private static func storedValue(_ bytes: [UInt8]) throws {
    let value = Array(bytes.dropFirst())
    switch (bytes.first ?? 0) % 4 {
    case 0:
      guard let producer = try? StoredProducer(decoding: value) else { return }
      try check(producer, StoredProducer(decoding: producer.encoded()))
      // A producer that returns with this sequence gets a grant, and publishes.
      var credit = PublicationCredit(startingAt: producer.next)
      _ = credit.add(PublishingBudget.Allowance(records: 1 << 32, bytes: .max))
    case 1:
      guard let cursor = try? StoredCursor(decoding: value) else { return }
      try check(cursor, StoredCursor(decoding: cursor.encoded()))
    case 2:
      guard let group = try? StoredGroup(decoding: value, atMost: 1_000) else { return }
      try check(group, StoredGroup(decoding: group.encoded()))
      try goOn(with: group)
    default:
      _ = try? StoredValue.name(value)
      _ = try? StoredValue.number(value)
    }
  }

  /// Continues with a stored group: a member joins, and gets the waiting records.
  private static func goOn(with stored: StoredGroup) throws {
    let rules = stored.settings.rules
    let clocks = ClockReading(now: MonotonicTime(nanoseconds: 0), wallClock: 1_700_000_000_000)
    let now = clocks.now
    var state = GroupState(rules, restoring: stored.state, limit: 1_100, at: clocks)
    let member = state.join()
    state.setRoom(2_000, of: member)
    let head = stored.state.frontier.addingReportingOverflow(10)
    state.distribute(before: head.overflow ? .max : head.partialValue, now: now)
    for run in state.takeAssignments() where run.count > 0 {
      let settle = Settle(.retry, delivery: run.delivery, firstOffset: run.first, count: run.count)
      if rules.isExplicit { state.settle(settle, now: now) }
    }
    state.expire(now: .init(nanoseconds: .max))
    while let record = state.nextDeadLetter() { state.deadLetterDone(record.offset, isKept: true) }
    state._checkInvariants()
    guard rules.isExplicit || stored.state.entries.isEmpty || state.entries == 0 else {
      throw ProbeViolation("a group with automatic acknowledgement has entries")
    }
  }

  private static func check<Value: Equatable>(_ value: Value, _ again: Value) throws {
    guard value == again else { throw ProbeViolation("\(value) isn't the same when it is read again") }
  }
}
