import SluiceIO

/// Which producers a topic knows by their numbers, and which record it expects of each next.
///
/// A producer that comes back after a lost connection learns from it what of its records is in the log, and sends the rest: so each is in
/// it once. Bounded: beyond the limit those that have been gone for longest are forgotten, and so is whoever is gone for too long.
///
/// A value without a lock: it belongs to its topic's, so that an entry and the log never disagree.
struct ProducerTable {
  struct Limits: Sendable {
    /// Producers remembered, attached or not.
    var producers = 10_000
    /// How long one is remembered that isn't attached.
    var memory: Duration = .seconds(86_400)
  }

  /// What an attached producer appends with. Good until somebody else attaches with the same number.
  struct Ticket: Hashable, Sendable {
    fileprivate let slot: Int
    fileprivate let generation: UInt64
  }

  /// Who is attached.
  struct Holder: Sendable {
    /// The broker's number for the connection: a later one is larger.
    var connection: UInt64
    /// To be told that its ticket isn't good any more. Called without a lock, on any loop.
    var lose: @Sendable (Ticket) -> Void
  }

  /// Who was attached before, and has to be told.
  struct Loser: Sendable {
    fileprivate let holder: Holder
    fileprivate let ticket: Ticket

    func tell() { holder.lose(ticket) }
  }

  enum Opening {
    case opened(Ticket, next: UInt64, Loser?)
    /// Whoever is attached has a later connection: this is an old one's last word, or a competitor that has lost already.
    case outrun
    /// So many are attached at the moment.
    case full(limit: Int)
    /// What is kept besides records takes as much memory as it may.
    case noMemory
  }

  private struct Entry {
    var producer: UInt64
    var next: UInt64
    /// Counts who came, over all entries: tickets are told apart by it.
    var generation: UInt64
    /// Nil while nobody is attached.
    var holder: Holder?
  }

  /// Somebody who left, and when. Out of date when the slot's generation is another.
  private struct Departure {
    var slot: Int
    var generation: UInt64
    var time: MonotonicTime
  }

  private static let forgottenBytes = 24

  private let limits: Limits
  /// Nil where memory isn't counted.
  private let kept: KeptMemory.Share?
  private var entries: [Entry?] = []
  private var freeSlots: [Int] = []
  private var slots: [UInt64: Int] = [:]
  private var generations: UInt64 = 0
  /// In the order of leaving, from `firstDeparture` on.
  private var departures: [Departure] = []
  private var firstDeparture = 0
  /// Numbers that were forgotten since they were taken last; nil where nobody takes them.
  private var forgotten: Set<UInt64>?

  /// - Parameter isKept: whether the table is kept beyond the process, so that what it forgets must be dropped there: see ``takeForgotten()``.
  init(limits: Limits, isKept: Bool = false, kept: KeptMemory.Share? = nil) {
    self.limits = limits
    self.kept = kept
    forgotten = isKept ? [] : nil
  }

  /// Producers known.
  var count: Int { slots.count }

  /// Places in memory, used or not.
  var memory: Int { entries.count + departures.count }

  /// Attaches a producer that still has its records from `first` on.
  ///
  /// One that isn't known, or knows of more acknowledgements than the table does, is believed: it has them from somewhere, such as a
  /// epoch of the topic that is lost.
  mutating func open(
    _ producer: UInt64, from first: UInt64, _ holder: Holder, now: MonotonicTime
  ) -> Opening {
    forgetExpired(now)
    if let slot = slots[producer], var entry = entries[slot] {
      var loser: Loser?
      if let old = entry.holder {
        guard holder.connection >= old.connection else { return .outrun }
        loser = Loser(holder: old, ticket: Ticket(slot: slot, generation: entry.generation))
      }
      entry.next = max(entry.next, first)
      entry.holder = holder
      entry.generation = newGeneration()
      entries[slot] = entry
      return .opened(Ticket(slot: slot, generation: entry.generation), next: entry.next, loser)
    }
    while slots.count >= limits.producers {
      guard forgetOldest() else { return .full(limit: limits.producers) }
    }
    // In the place of another one, if there is no memory for more.
    if kept?.isFull == true, !forgetOldest() { return .noMemory }
    return .opened(add(producer, next: first, holder), next: first, nil)
  }

  private mutating func add(_ producer: UInt64, next: UInt64, _ holder: Holder?) -> Ticket {
    let entry = Entry(producer: producer, next: next, generation: newGeneration(), holder: holder)
    let slot = freeSlots.popLast() ?? entries.count
    if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
    slots[producer] = slot
    kept?.add(KeptMemory.producer)
    return Ticket(slot: slot, generation: entry.generation)
  }

  func isCurrent(_ ticket: Ticket) -> Bool {
    entries[ticket.slot]?.generation == ticket.generation
  }

  /// So many records of the producer are about to be appended. Returns false, and nothing must be, when the ticket isn't good any more.
  mutating func advance(_ ticket: Ticket, by count: UInt64) -> Bool {
    guard isCurrent(ticket) else { return false }
    entries[ticket.slot]?.next += count
    return true
  }

  /// The producer has left.
  mutating func close(_ ticket: Ticket, now: MonotonicTime) {
    guard isCurrent(ticket) else { return }
    entries[ticket.slot]?.holder = nil
    departures.append(Departure(slot: ticket.slot, generation: ticket.generation, time: now))
    tidy()
  }

  private mutating func newGeneration() -> UInt64 {
    generations += 1
    return generations
  }

  // MARK: What is kept beyond the process

  /// Who holds a ticket, and which record is expected of it next; nil when the ticket isn't good any more.
  func next(of ticket: Ticket) -> (producer: UInt64, next: UInt64)? {
    guard isCurrent(ticket), let entry = entries[ticket.slot] else { return nil }
    return (entry.producer, entry.next)
  }

  /// Which record is expected next of a producer; nil of one that isn't known.
  func next(of producer: UInt64) -> UInt64? {
    slots[producer].flatMap { entries[$0]?.next }
  }

  /// A producer that was known before the broker started, and left, as far as it is to be remembered, just now. Does nothing with one that
  /// is known already.
  mutating func restore(_ producer: UInt64, next: UInt64, now: MonotonicTime) {
    guard slots[producer] == nil else { return }
    while slots.count >= limits.producers {
      // Everybody is attached: whoever isn't there yet is who was gone for longest.
      guard forgetOldest() else {
        if forgotten?.insert(producer).inserted == true { kept?.add(Self.forgottenBytes) }
        return
      }
    }
    close(add(producer, next: next, nil), now: now)
  }

  /// Whom the table has forgotten since it was asked last, and doesn't know again by now: in no order.
  mutating func takeForgotten() -> [UInt64] {
    guard let forgotten, !forgotten.isEmpty else { return [] }
    self.forgotten = []
    kept?.add(-forgotten.count * Self.forgottenBytes)
    return forgotten.filter { slots[$0] == nil }
  }

  // MARK: Forgetting

  private mutating func forgetExpired(_ now: MonotonicTime) {
    while let oldest = oldestDeparture, oldest.time + limits.memory <= now { _ = forgetOldest() }
  }

  /// Forgets who has been gone for longest. Returns false when everybody is attached.
  private mutating func forgetOldest() -> Bool {
    guard let departure = oldestDeparture else { return false }
    firstDeparture += 1
    if let entry = entries[departure.slot] {
      slots[entry.producer] = nil
      kept?.add(-KeptMemory.producer)
      if forgotten?.insert(entry.producer).inserted == true { kept?.add(Self.forgottenBytes) }
    }
    entries[departure.slot] = nil
    freeSlots.append(departure.slot)
    return true
  }

  /// The first that isn't out of date.
  private var oldestDeparture: Departure? {
    mutating get {
      while firstDeparture < departures.count {
        let departure = departures[firstDeparture]
        if isCurrent(departure) { return departure }
        firstDeparture += 1
      }
      departures = []
      firstDeparture = 0
      return nil
    }
  }

  private func isCurrent(_ departure: Departure) -> Bool {
    guard let entry = entries[departure.slot] else { return false }
    return entry.generation == departure.generation && entry.holder == nil
  }

  /// Drops what is out of date when there is more of it than of anything else.
  private mutating func tidy() {
    guard departures.count > 2 * slots.count + 16 else { return }
    departures = departures[firstDeparture...].filter { isCurrent($0) }
    firstDeparture = 0
  }
}
