import SluiceWire

/// Records that were accepted for publishing, encoded as they travel, until they are acknowledged; and who waits to hear of them.
///
/// ```
///   … acknowledged │ sent, in flight  │ to be sent again │ waiting ───────────► │
///                  │ flight.sent      │ flight.again     │ store[head...]       │ accepted
///                                                                               + whoever waits for room
/// ```
///
/// A record gets its sequence when it is sent for the first time, and keeps it when it is sent again.
///
/// A value without a lock: its owner has one. Whatever is to be called is returned, not called.
struct PublishQueue {
  typealias Outcome = Result<TopicSubject.Receipt, ClientError>
  typealias Completion = @Sendable (Outcome) -> Void
  /// Whom to tell what, when the lock is free.
  typealias Calls = [(Completion, Outcome)]

  /// Somebody who waits for records to be acknowledged.
  private struct Ticket {
    /// The first record, counted as accepted while it waits, as sent afterwards, that isn't waited for.
    var through: UInt64
    /// True when one record is waited for, which may also be dropped; false when everything before is.
    var isRecord: Bool
    var completion: Completion
  }

  /// Somebody who waits for room.
  private struct Applicant {
    enum Wish {
      /// The record is to be accepted.
      case acceptance(Message)
      /// The record is to be accepted and acknowledged.
      case acknowledgement(Message)
      /// All accepted before, those in front included, is to be acknowledged.
      case flush
    }

    var id: UInt64
    var wish: Wish
    var completion: Completion
  }

  let limits: TopicSubject.Buffer
  /// True when a record counts as acknowledged as soon as it is sent.
  let isUnacknowledged: Bool
  /// The sequence of the first record.
  private let origin: UInt64

  private var store = RecordStore()
  /// Where the first record that wasn't sent yet is.
  private var head = 0
  private var flight = Flight()
  /// The broker has everything before this sequence from an earlier life of the producer: it isn't sent at all.
  private var known: UInt64 = 0
  /// Records that wait to be sent.
  private(set) var count = 0
  private(set) var accepted: UInt64 = 0
  private(set) var dropped: UInt64 = 0
  /// Records that were sent, and forgotten without an acknowledgement.
  private var unanswered: UInt64 = 0
  /// Sequences: of the next record to be sent for the first time, and of the first that isn't acknowledged.
  private(set) var sent: UInt64
  private(set) var acknowledged: UInt64
  private var lastOffset: UInt64?
  private var acceptedBytes: UInt64 = 0

  private var waitingTickets = Queue<Ticket>()
  private var sentTickets = Queue<Ticket>()
  private var applicants = Queue<Applicant>()
  private var lastApplicant: UInt64 = 0

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
  var isFull: Bool { count >= limits.records || byteCount >= limits.bytes || !applicants.isEmpty }

  var isEmpty: Bool { count == 0 && applicants.isEmpty && flight.again.isEmpty }

  /// Whether nothing that was sent waits for the broker's answer.
  var isAcknowledged: Bool { acknowledged >= sent }

  /// Records of this queue that the broker has acknowledged.
  var acknowledgedCount: UInt64 { min(acknowledged, sent) - origin - unanswered }

  /// The sequence of the first record that is still here, sent or not.
  var firstSequence: UInt64 { min(acknowledged, sent) }

  /// As much is under way as may be: nothing is sent before some of it is acknowledged.
  var isBlocked: Bool { flight.again.isEmpty && flight.byteCount >= limits.unacknowledgedBytes }

  /// What a record has taken on average, in bytes.
  var averageSize: Int { accepted == 0 ? 1_024 : max(1, Int(acceptedBytes / accepted)) }

  // MARK: In

  /// Accepts a record; `body` appends it, as an item, and can't fail any more.
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
    if !applicants.isEmpty {
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

  /// Waits until there is room for `message`, and if so wished until it is acknowledged. Returns a number to give up with.
  mutating func apply(
    _ message: Message, awaitsAcknowledgement: Bool, _ completion: @escaping Completion
  ) -> UInt64 {
    apply(awaitsAcknowledgement ? .acknowledgement(message) : .acceptance(message), completion)
  }

  private mutating func apply(_ wish: Applicant.Wish, _ completion: @escaping Completion) -> UInt64 {
    lastApplicant += 1
    applicants.append(Applicant(id: lastApplicant, wish: wish, completion: completion))
    return lastApplicant
  }

  /// Gives up waiting for room; too late, nothing happens.
  mutating func withdraw(_ id: UInt64) -> Calls {
    guard applicants.removeFirst(where: { $0.id == id }) != nil else { return [] }
    return admit()
  }

  /// Makes room by forgetting the oldest record that waits.
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

  /// One that wasn't accepted.
  mutating func countDropped() {
    dropped += 1
  }

  // MARK: Out

  /// Copies records to `output`: at most `records`, and about `byteLimit` bytes, but one if there is any. Those that are sent again
  /// come first.
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

  /// So many of the waiting records have a sequence from now on.
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

  /// Lets go of records that an earlier life of the producer has published.
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

  /// There is another stream, on which the broker expects the record with that sequence: what was under way is sent again from there.
  ///
  /// - Returns: nil when the broker can't know of that sequence.
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

  /// Lets in those who wait for room, in their order.
  private mutating func admit() -> Calls {
    var calls: Calls = []
    while let applicant = applicants.first {
      switch applicant.wish {
      case .flush:
        applicants.removeFirst()
        // Not to be put behind those who came later.
        let others = applicants
        applicants.removeAll()
        calls += awaitAll(applicant.completion)
        applicants = others
      case .acceptance(let message), .acknowledgement(let message):
        guard count < limits.records, byteCount < limits.bytes else { return calls }
        applicants.removeFirst()
        accept { message.append(to: &$0) }
        if case .acknowledgement = applicant.wish {
          awaitLast(applicant.completion)
        } else {
          calls.append((applicant.completion, .success(TopicSubject.Receipt(sequence: 0, offset: nil))))
        }
      }
    }
    return calls
  }

  // MARK: Acknowledgements

  /// The broker has so many records, the last at that offset.
  mutating func acknowledge(through: UInt64, lastOffset offset: UInt64) -> Calls {
    acknowledged = max(acknowledged, through)
    lastOffset = offset
    flight.acknowledge(through: through, store)
    tidy()
    return settle()
  }

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

  /// Drops all records that aren't acknowledged, and continues with the sequence after the records that were sent. Returns the calls of their
  /// completions with `outcome`.
  mutating func discard(_ outcome: Outcome) -> Calls {
    let lost = sent - min(acknowledged, sent)
    dropped += lost + UInt64(count)
    unanswered += lost
    acknowledged = sent
    known = sent
    return removeAll(outcome)
  }

  /// Forgets everything. Whoever waits is told `outcome`.
  mutating func removeAll(_ outcome: Outcome) -> Calls {
    store = RecordStore()
    flight = Flight()
    head = 0
    count = 0
    var calls: Calls = []
    while let ticket = sentTickets.popFirst() { calls.append((ticket.completion, outcome)) }
    while let ticket = waitingTickets.popFirst() { calls.append((ticket.completion, outcome)) }
    while let applicant = applicants.popFirst() { calls.append((applicant.completion, outcome)) }
    return calls
  }
}

extension ClientError {
  static let dropped = ClientError(
    .bufferFull,
    "the record was dropped, since newer ones came while the broker granted nothing; publish slower")
}
