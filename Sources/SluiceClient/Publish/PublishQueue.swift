import SluiceWire

/// Records that were accepted for publishing, encoded as on the wire, until they are acknowledged; and the completions that wait for that.
///
/// ```
///   … acknowledged │ sent, in flight  │ to be sent again │ waiting ───────────► │
///                  │ flight.sent      │ flight.again     │ store[head...]       │ accepted
///                                                                               + those that wait for room
/// ```
///
/// A record gets its sequence when it is sent for the first time, and keeps it when it is sent again.
///
/// A value without a lock: its owner has one. Functions return the completions to call, and don't call them.
struct PublishQueue {
  typealias Outcome = Result<TopicSubject.Receipt, ClientError>
  typealias Completion = @Sendable (Outcome) -> Void
  /// Completions with their results, to be called without the lock.
  typealias Calls = [(Completion, Outcome)]

  /// A wait for acknowledgements.
  private struct Ticket {
    /// The first record behind the awaited ones, counted as accepted while it waits, as sent afterwards.
    var through: UInt64
    /// True for one record, which may also be dropped; false for all records before `through`.
    var isRecord: Bool
    var completion: Completion
  }

  /// A wait for room.
  private struct RoomWaiter {
    enum Goal {
      /// The record is to be accepted.
      case acceptance(Message)
      /// The record is to be accepted and acknowledged.
      case acknowledgement(Message)
      /// All records accepted before, including those of earlier waiters, are to be acknowledged.
      case flush
    }

    var id: UInt64
    var goal: Goal
    var completion: Completion
  }

  let limits: TopicSubject.Buffer
  /// Whether a record counts as acknowledged as soon as it is sent.
  let isUnacknowledged: Bool
  /// The sequence of the first record.
  private let origin: UInt64

  private var store = RecordStore()
  /// The place of the first record that wasn't sent.
  private var head = 0
  private var flight = Flight()
  /// The sequence before which an earlier process of the producer has published all records: they aren't sent.
  private var known: UInt64 = 0
  /// Records that wait to be sent.
  private(set) var count = 0
  private(set) var accepted: UInt64 = 0
  private(set) var dropped: UInt64 = 0
  /// Records that were sent, and discarded without an acknowledgement.
  private var unanswered: UInt64 = 0
  /// The sequences of the next record to be sent for the first time, and of the first that isn't acknowledged.
  private(set) var sent: UInt64
  private(set) var acknowledged: UInt64
  private var lastOffset: UInt64?
  private var acceptedBytes: UInt64 = 0

  private var waitingTickets = Queue<Ticket>()
  private var sentTickets = Queue<Ticket>()
  private var roomWaiters = Queue<RoomWaiter>()
  private var lastWaiter: UInt64 = 0

  init(limits: TopicSubject.Buffer, isUnacknowledged: Bool, firstSequence: UInt64 = 0) {
    self.limits = limits
    self.isUnacknowledged = isUnacknowledged
    origin = firstSequence
    sent = firstSequence
    acknowledged = firstSequence
  }

  /// Bytes that wait to be sent for the first time.
  var byteCount: Int { store.end - head }

  /// Whether the next record must wait, or be dropped.
  var isFull: Bool { count >= limits.records || byteCount >= limits.bytes || !roomWaiters.isEmpty }

  var isEmpty: Bool { count == 0 && roomWaiters.isEmpty && flight.again.isEmpty }

  /// Whether all sent records are acknowledged.
  var isAcknowledged: Bool { acknowledged >= sent }

  /// Records of this queue that the broker has acknowledged.
  var acknowledgedCount: UInt64 { min(acknowledged, sent) - origin - unanswered }

  /// The sequence of the first record in the queue, sent or not.
  var firstSequence: UInt64 { min(acknowledged, sent) }

  /// Whether the limit of unacknowledged bytes is reached, so that nothing is sent before an acknowledgement.
  var isBlocked: Bool { flight.again.isEmpty && flight.byteCount >= limits.unacknowledgedBytes }

  /// The average size of a record, in bytes.
  var averageSize: Int { accepted == 0 ? 1_024 : max(1, Int(acceptedBytes / accepted)) }

  // MARK: In

  /// Accepts a record, which `body` appends as an item.
  mutating func accept(_ body: (inout [UInt8]) -> Void) {
    acceptedBytes += UInt64(store.append(body))
    count += 1
    accepted += 1
  }

  /// Waits until the record just accepted is acknowledged.
  mutating func awaitLast(_ completion: @escaping Completion) {
    waitingTickets.append(Ticket(through: accepted, isRecord: true, completion: completion))
  }

  /// Waits until all records accepted so far are acknowledged, or dropped.
  mutating func awaitAll(_ completion: @escaping Completion) -> Calls {
    if !roomWaiters.isEmpty {
      _ = apply(.flush, completion)
    } else if count > 0 {
      waitingTickets.append(Ticket(through: accepted, isRecord: false, completion: completion))
    } else if !isAcknowledged {
      sentTickets.append(Ticket(through: sent, isRecord: false, completion: completion))
    } else {
      return [(completion, .success(receipt(through: sent)))]
    }
    return []
  }

  /// Waits until there is room for `message`, and with `awaitsAcknowledgement` until it is acknowledged. Returns an id to stop waiting with.
  mutating func apply(
    _ message: Message, awaitsAcknowledgement: Bool, _ completion: @escaping Completion
  ) -> UInt64 {
    apply(awaitsAcknowledgement ? .acknowledgement(message) : .acceptance(message), completion)
  }

  private mutating func apply(_ goal: RoomWaiter.Goal, _ completion: @escaping Completion) -> UInt64 {
    lastWaiter += 1
    roomWaiters.append(RoomWaiter(id: lastWaiter, goal: goal, completion: completion))
    return lastWaiter
  }

  /// Stops waiting for room. Without effect for a record that was accepted.
  mutating func withdraw(_ id: UInt64) -> Calls {
    guard roomWaiters.removeFirst(where: { $0.id == id }) != nil else { return [] }
    return admit()
  }

  /// Makes room by dropping the oldest waiting record.
  ///
  /// - Precondition: there is one.
  mutating func dropOldest() -> Calls {
    head = store.next(head)
    count -= 1
    dropped += 1
    var calls: Calls = []
    let passed = accepted - UInt64(count)
    while let ticket = waitingTickets.first, ticket.through <= passed {
      waitingTickets.removeFirst()
      if ticket.isRecord {
        calls.append((ticket.completion, .failure(.dropped)))
      } else {
        sentTickets.append(Ticket(through: sent, isRecord: false, completion: ticket.completion))
      }
    }
    tidy()
    return calls + settle()
  }

  /// Counts a record that wasn't accepted.
  mutating func countDropped() {
    dropped += 1
  }

  // MARK: Out

  /// Copies records to `output`: at most `records` and about `byteLimit` bytes, but at least one if there is any. Records that are sent
  /// again come first.
  mutating func take(records: UInt32, bytes byteLimit: Int, into output: inout [UInt8]) -> (UInt32, Calls) {
    let calls = skipKnown()
    if let run = flight.resend(store, records: UInt64(records), bytes: byteLimit) {
      store.copy(run.start..<run.end, to: &output)
      return (UInt32(run.count), calls)
    }
    let limit = min(byteLimit, limits.unacknowledgedBytes - flight.byteCount)
    guard count > 0, limit > 0 else { return (0, calls) }
    let cut = store.cut(from: head, to: store.end, of: UInt64(count), records: UInt64(records), bytes: limit)
    store.copy(head..<cut.end, to: &output)
    let start = head
    head = cut.end
    advance(by: cut.count)
    if isUnacknowledged {
      acknowledged = sent
      tidy()
    } else {
      flight.sent.append(Flight.Run(start: start, end: cut.end, count: cut.count, through: sent))
      flight.byteCount += cut.end - start
    }
    return (UInt32(cut.count), calls + admit() + settle())
  }

  /// Gives the first `taken` waiting records their sequences.
  private mutating func advance(by taken: UInt64) {
    let before = accepted - UInt64(count)
    while let ticket = waitingTickets.first, ticket.through <= before + taken {
      waitingTickets.removeFirst()
      sentTickets.append(
        Ticket(
          through: sent + (ticket.through - before), isRecord: ticket.isRecord, completion: ticket.completion)
      )
    }
    count -= Int(taken)
    sent += taken
  }

  /// Removes records that an earlier process of the producer has published.
  private mutating func skipKnown() -> Calls {
    guard sent < known, count > 0 else { return [] }
    let skipped = min(known - sent, UInt64(count))
    for _ in 0..<skipped { head = store.next(head) }
    advance(by: skipped)
    tidy()
    return admit() + settle()
  }

  private mutating func tidy() {
    store.forget(before: flight.start ?? head)
  }

  // MARK: Another stream

  /// Continues on another stream, on which the broker expects the record with the sequence `next`: unacknowledged records from there on are
  /// sent again.
  ///
  /// - Returns: nil if that record was never sent.
  mutating func resume(at next: UInt64, mayBeAhead: Bool) -> Calls? {
    guard next <= sent || mayBeAhead else { return nil }
    flight.interrupt()
    flight.acknowledge(through: next, store)
    if next > acknowledged {
      acknowledged = next
      lastOffset = nil
    }
    known = next
    tidy()
    return skipKnown() + settle()
  }

  /// Accepts the messages that wait for room, in their order.
  private mutating func admit() -> Calls {
    var calls: Calls = []
    while let waiter = roomWaiters.first {
      switch waiter.goal {
      case .flush:
        roomWaiters.removeFirst()
        // Keeps its place in front of the later waiters.
        let others = roomWaiters
        roomWaiters.removeAll()
        calls += awaitAll(waiter.completion)
        roomWaiters = others
      case .acceptance(let message), .acknowledgement(let message):
        guard count < limits.records, byteCount < limits.bytes else { return calls }
        roomWaiters.removeFirst()
        accept { message.append(to: &$0) }
        if case .acknowledgement = waiter.goal {
          awaitLast(waiter.completion)
        } else {
          calls.append((waiter.completion, .success(TopicSubject.Receipt(sequence: 0, offset: nil))))
        }
      }
    }
    return calls
  }

  // MARK: Acknowledgements

  /// Handles an acknowledgement of all records before the sequence `through`, the last of them at that offset.
  mutating func acknowledge(through: UInt64, lastOffset offset: UInt64) -> Calls {
    acknowledged = max(acknowledged, through)
    lastOffset = offset
    flight.acknowledge(through: through, store)
    tidy()
    return settle()
  }

  /// Returns the completions of the records that are acknowledged.
  private mutating func settle() -> Calls {
    guard !sentTickets.isEmpty else { return [] }
    var calls: Calls = []
    while let ticket = sentTickets.first, ticket.through <= acknowledged {
      sentTickets.removeFirst()
      calls.append((ticket.completion, .success(receipt(through: ticket.through))))
    }
    return calls
  }

  private func receipt(through: UInt64) -> TopicSubject.Receipt {
    TopicSubject.Receipt(
      sequence: through == 0 ? 0 : through - 1,
      offset: !isUnacknowledged && through > 0 && through == acknowledged ? lastOffset : nil)
  }

  /// Drops all unacknowledged records, and continues with the sequence after those sent. Returns their completions with `outcome`.
  mutating func discard(_ outcome: Outcome) -> Calls {
    let lost = sent - min(acknowledged, sent)
    dropped += lost + UInt64(count)
    unanswered += lost
    acknowledged = sent
    known = sent
    return removeAll(outcome)
  }

  /// Removes everything. Returns all pending completions with `outcome`.
  mutating func removeAll(_ outcome: Outcome) -> Calls {
    store = RecordStore()
    flight = Flight()
    head = 0
    count = 0
    var calls: Calls = []
    while let ticket = sentTickets.popFirst() { calls.append((ticket.completion, outcome)) }
    while let ticket = waitingTickets.popFirst() { calls.append((ticket.completion, outcome)) }
    while let waiter = roomWaiters.popFirst() { calls.append((waiter.completion, outcome)) }
    return calls
  }
}

extension ClientError {
  static let dropped = ClientError(
    .bufferFull,
    "the record was dropped, since newer ones came while the broker granted nothing; publish slower")
}
