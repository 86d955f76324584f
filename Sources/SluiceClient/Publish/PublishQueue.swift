import SluiceWire

/// Records that were accepted for publishing, encoded as they travel, and who waits to hear of them.
///
/// ```
///   … dropped or sent │ waiting ──────────────► │
///                     │ bytes[head...]          │ accepted
///   acknowledged ≤ sent                         + whoever waits for room
/// ```
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

  private var bytes: [UInt8] = []
  private var head = 0
  /// Records that wait to be sent.
  private(set) var count = 0
  private(set) var accepted: UInt64 = 0
  private(set) var dropped: UInt64 = 0
  private(set) var sent: UInt64 = 0
  private(set) var acknowledged: UInt64 = 0
  private var lastOffset: UInt64?
  private var acceptedBytes: UInt64 = 0

  private var waitingTickets = Queue<Ticket>()
  private var sentTickets = Queue<Ticket>()
  private var applicants = Queue<Applicant>()
  private var lastApplicant: UInt64 = 0

  /// Memory up to this is kept when nothing waits.
  private static let keptCapacity = 256 << 10

  init(limits: TopicSubject.Buffer, isUnacknowledged: Bool) {
    self.limits = limits
    self.isUnacknowledged = isUnacknowledged
  }

  /// Bytes that wait to be sent.
  var byteCount: Int { bytes.count - head }

  /// Whether the next record must wait, or be dropped.
  var isFull: Bool { count >= limits.records || byteCount >= limits.bytes || !applicants.isEmpty }

  var isEmpty: Bool { count == 0 && applicants.isEmpty }

  /// Whether nothing that was sent waits for the broker's answer.
  var isAcknowledged: Bool { acknowledged == sent }

  /// What a record has taken on average, in bytes.
  var averageSize: Int { accepted == 0 ? 1_024 : max(1, Int(acceptedBytes / accepted)) }

  // MARK: In

  /// Accepts a record; `body` appends it, as an item, and can't fail any more.
  mutating func accept(_ body: (inout [UInt8]) -> Void) {
    let before = bytes.count
    body(&bytes)
    acceptedBytes += UInt64(bytes.count - before)
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
    } else if acknowledged < sent {
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
    head += RecordLayout.wordSize + lengthOfFirst()
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

  /// Moves records to `output`: at most `records`, and about `byteLimit` bytes, but one if there is any.
  mutating func take(records: UInt32, bytes byteLimit: Int, into output: inout [UInt8]) -> (UInt32, Calls) {
    let (taken, end) = cut(records: Int(records), bytes: byteLimit)
    guard taken > 0 else { return (0, []) }
    bytes.withUnsafeBytes { output.append(contentsOf: $0[head..<end]) }
    let before = accepted - UInt64(count)
    while let ticket = waitingTickets.first, ticket.through <= before + UInt64(taken) {
      waitingTickets.removeFirst()
      sentTickets.append(
        Ticket(
          through: sent + (ticket.through - before), isRecord: ticket.isRecord, completion: ticket.completion)
      )
    }
    head = end
    count -= taken
    sent += UInt64(taken)
    tidy()
    if isUnacknowledged { acknowledged = sent }
    return (UInt32(taken), admit() + settle())
  }

  /// Where so many records end.
  private func cut(records: Int, bytes limit: Int) -> (count: Int, end: Int) {
    if count <= records, byteCount <= limit { return (count, bytes.count) }
    var position = head
    var taken = 0
    bytes.withUnsafeBytes { all in
      let base = all.baseAddress!
      while taken < min(records, count) {
        let next =
          position + RecordLayout.wordSize + RecordLayout.length(RecordLayout.word(at: base + position))
        guard next - head <= limit || taken == 0 else { break }
        position = next
        taken += 1
      }
    }
    return (taken, position)
  }

  private func lengthOfFirst() -> Int {
    bytes.withUnsafeBytes { RecordLayout.length(RecordLayout.word(at: $0.baseAddress! + head)) }
  }

  private mutating func tidy() {
    if head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      head = 0
    } else if head > Self.keptCapacity, head * 2 > bytes.count {
      bytes.removeSubrange(..<head)
      head = 0
    }
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
    return settle()
  }

  private mutating func settle() -> Calls {
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

  /// Forgets everything. Whoever waits is told `outcome`.
  mutating func removeAll(_ outcome: Outcome) -> Calls {
    bytes = []
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
