import SluiceIO
import SluiceWire

/// A topic's producers by ID, and the sequence that the topic expects next of each.
///
/// A producer that reconnects gets from it which of its records are in the log, and sends the others, so that each is appended once. Bounded: at the limit,
/// producers that detached first are removed, and so is a producer that is detached for too long.
///
/// A value without a lock: the topic's lock protects it, so that an entry and the log always agree.
package struct ProducerTable {
  package struct Limits: Sendable {
    /// The most producers, attached or not.
    package var producers = 10_000
    /// How long a detached producer is kept.
    package var memory: Duration = .seconds(86_400)
  }

  /// The right of an attached producer to append. Valid until another publication attaches with the same ID.
  package struct Ticket: Hashable, Sendable {
    fileprivate let slot: Int
    fileprivate let generation: UInt64
  }

  /// The attached publication.
  package struct Holder: Sendable {
    /// The broker's number for the connection: a later connection's is larger. Nil if the publication comes from another node, or is the broker's own: the
    /// order of connections is then unknown, and the last publication to open is the newest.
    package var connection: UInt64?
    /// Notifies it that its ticket is no longer valid. Called without a lock, on any loop.
    package var lose: @Sendable (Ticket) -> Void

    package init(connection: UInt64?, lose: @escaping @Sendable (Ticket) -> Void) {
      self.connection = connection
      self.lose = lose
    }
  }

  /// The publication that was attached before, to be notified.
  package struct FormerHolder: Sendable {
    fileprivate let holder: Holder
    fileprivate let ticket: Ticket

    package func notify() { holder.lose(ticket) }
  }

  package enum Opening {
    case opened(Ticket, next: UInt64, FormerHolder?)
    /// The attached publication has a later connection, so this one is fenced.
    case fenced
    /// The limit of attached producers is reached.
    case full(limit: Int)
    /// The memory of the account, or of the broker, for objects besides records is used up.
    case noMemory(WireError)
  }

  private struct Entry {
    var producer: UInt64
    var next: UInt64
    /// Distinguishes the tickets of successive publications, over all entries.
    var generation: UInt64
    /// Nil while the producer is detached.
    var holder: Holder?
    /// Nil if memory isn't counted.
    var charge: KeptAccount.Charge?
  }

  /// A producer that detached, and when. Stale if the slot's generation differs.
  private struct Departure {
    var slot: Int
    var generation: UInt64
    var time: MonotonicTime
  }

  private static let forgottenBytes = 24

  private let limits: Limits
  /// The topic's charge, which includes removed IDs that the store still has; nil if memory isn't counted.
  private let kept: KeptAccount.Charge?
  private var entries: [Entry?] = []
  private var freeSlots: [Int] = []
  private var slots: [UInt64: Int] = [:]
  private var generations: UInt64 = 0
  /// In the order of departure, from `firstDeparture` on.
  private var departures: [Departure] = []
  private var firstDeparture = 0
  /// IDs removed since the last ``takeForgotten()``; nil if the table isn't stored.
  private var forgotten: Set<UInt64>?

  /// - Parameter isKept: whether the table is stored, so that removed producers must be deleted there: see ``takeForgotten()``.
  init(limits: Limits, isKept: Bool = false, kept: KeptAccount.Charge? = nil) {
    self.limits = limits
    self.kept = kept
    forgotten = isKept ? [] : nil
  }

  /// The number of producers, attached or not.
  package var count: Int { slots.count }

  /// Slots in memory, used or not.
  package var memory: Int { entries.count + departures.count }

  /// Attaches a producer that still has its records from `first` on.
  ///
  /// The table trusts a producer that is unknown, or has more acknowledgements than the table has records: they may be from a lost epoch of the topic.
  ///
  /// - Parameter account: the account that a new producer is charged to; nil if memory isn't counted.
  package mutating func open(
    _ producer: UInt64, from first: UInt64, _ holder: Holder, by account: KeptAccount? = nil,
    now: MonotonicTime
  ) -> Opening {
    forgetExpired(now)
    if let slot = slots[producer], var entry = entries[slot] {
      var former: FormerHolder?
      if let old = entry.holder {
        if let new = holder.connection, let old = old.connection, new < old { return .fenced }
        former = FormerHolder(holder: old, ticket: Ticket(slot: slot, generation: entry.generation))
      }
      entry.next = max(entry.next, first)
      entry.holder = holder
      entry.generation = newGeneration()
      entries[slot] = entry
      return .opened(Ticket(slot: slot, generation: entry.generation), next: entry.next, former)
    }
    while slots.count >= limits.producers {
      guard forgetOldest() else { return .full(limit: limits.producers) }
    }
    var charge: KeptAccount.Charge?
    do throws(WireError) {
      charge = try account?.charge(KeptMemory.producer, isPlain: true)
    } catch {
      // Without memory for another entry, the new one replaces the oldest detached producer of the same account.
      guard let account, forgetOldest(of: account) else { return .noMemory(error) }
      charge = account.take(KeptMemory.producer, isPlain: true)
    }
    return .opened(add(producer, next: first, holder, charge), next: first, nil)
  }

  private mutating func add(
    _ producer: UInt64, next: UInt64, _ holder: Holder?, _ charge: KeptAccount.Charge?
  ) -> Ticket {
    let entry = Entry(
      producer: producer, next: next, generation: newGeneration(), holder: holder, charge: charge)
    let slot = freeSlots.popLast() ?? entries.count
    if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
    slots[producer] = slot
    return Ticket(slot: slot, generation: entry.generation)
  }

  package func isCurrent(_ ticket: Ticket) -> Bool {
    entries[ticket.slot]?.generation == ticket.generation
  }

  /// Counts records that the caller is about to append. Returns false if the ticket is no longer valid; the caller must then not append.
  package mutating func advance(_ ticket: Ticket, by count: UInt64) -> Bool {
    guard isCurrent(ticket) else { return false }
    entries[ticket.slot]?.next += count
    return true
  }

  /// Detaches the producer.
  package mutating func close(_ ticket: Ticket, now: MonotonicTime) {
    guard isCurrent(ticket) else { return }
    entries[ticket.slot]?.holder = nil
    departures.append(Departure(slot: ticket.slot, generation: ticket.generation, time: now))
    tidy()
  }

  private mutating func newGeneration() -> UInt64 {
    generations += 1
    return generations
  }

  // MARK: Storage

  /// The ID of a ticket's producer and its next sequence; nil if the ticket is no longer valid.
  package func next(of ticket: Ticket) -> (producer: UInt64, next: UInt64)? {
    guard isCurrent(ticket), let entry = entries[ticket.slot] else { return nil }
    return (entry.producer, entry.next)
  }

  /// A producer's next sequence; nil for an unknown producer.
  package func next(of producer: UInt64) -> UInt64? {
    slots[producer].flatMap { entries[$0]?.next }
  }

  /// Adds a producer from the store, detached since `now`. Does nothing if the table already has it.
  ///
  /// - Parameter charge: for the producer; nil to charge the topic's account.
  package mutating func restore(
    _ producer: UInt64, next: UInt64, charge: KeptAccount.Charge? = nil, now: MonotonicTime
  ) {
    guard slots[producer] == nil else { return }
    while slots.count >= limits.producers {
      // All producers in the table are attached, so this one detached first.
      guard forgetOldest() else {
        if forgotten?.insert(producer).inserted == true { kept?.add(Self.forgottenBytes) }
        return
      }
    }
    let charge = charge ?? kept.map { $0.account.take(KeptMemory.producer, isPlain: true) }
    close(add(producer, next: next, nil, charge), now: now)
  }

  /// Adds a detached producer, none of whose records from `next` on are in the log. Does nothing for an attached producer, whose entry is newer.
  ///
  /// - Parameter charge: the charge for a new producer; nil to charge the topic's account.
  package mutating func raise(
    _ producer: UInt64, to next: UInt64, charge: KeptAccount.Charge? = nil, now: MonotonicTime
  ) {
    guard let slot = slots[producer] else { return restore(producer, next: next, charge: charge, now: now) }
    if let entry = entries[slot], entry.holder == nil { entries[slot]?.next = max(entry.next, next) }
  }

  /// The producers and their next sequences, in the order of their IDs.
  ///
  /// - Parameters:
  ///   - number: only producers with larger IDs; nil for all.
  ///   - limit: the most producers.
  func list(
    after number: UInt64?, limit: Int
  ) -> (producers: [(producer: UInt64, next: UInt64)], more: Bool) {
    let due = slots.keys.lazy.filter { producer in number.map { $0 < producer } ?? true }
    let (page, more) = due.page(atMost: limit, by: <)
    return (page.compactMap { producer in next(of: producer).map { (producer, $0) } }, more)
  }

  /// Returns the producers that were removed since the last call and haven't been added again, in no order.
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

  /// Removes the producer that detached first. Returns false if all are attached.
  private mutating func forgetOldest() -> Bool {
    guard let departure = oldestDeparture else { return false }
    firstDeparture += 1
    forget(departure.slot)
    return true
  }

  /// Removes the account's producer that detached first. Returns false if all of its producers are attached.
  private mutating func forgetOldest(of account: KeptAccount) -> Bool {
    let departure = departures[firstDeparture...].first { departure in
      isCurrent(departure) && entries[departure.slot]?.charge?.account.isSame(as: account) == true
    }
    guard let departure else { return false }
    forget(departure.slot)
    return true
  }

  private mutating func forget(_ slot: Int) {
    if let entry = entries[slot] {
      slots[entry.producer] = nil
      if forgotten?.insert(entry.producer).inserted == true { kept?.add(Self.forgottenBytes) }
    }
    entries[slot] = nil
    freeSlots.append(slot)
  }

  /// The first departure that isn't stale.
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

  /// Removes stale departures when they outnumber the others.
  private mutating func tidy() {
    guard departures.count > 2 * slots.count + 16 else { return }
    departures = departures[firstDeparture...].filter { isCurrent($0) }
    firstDeparture = 0
  }
}

extension TopicLimits {
  var producerTable: ProducerTable.Limits {
    ProducerTable.Limits(producers: producers, memory: producerMemory)
  }
}
