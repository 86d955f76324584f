import SluiceIO

/// A topic's durable cursors by name: positions that outlive the subscriptions that move them.
///
/// One subscription at a time uses a cursor; a later one takes it over, and the former one is notified. Bounded: a cursor that is unused for too long is
/// removed, and at the limit no new cursor is created.
///
/// A value without a lock and without I/O: it belongs to its topic's state. The store contains a cursor's name and ``place(of:)``.
package struct CursorTable {
  package struct Limits: Sendable {
    /// The most cursors, used or not.
    package var cursors = 10_000
    /// How long an unused cursor is kept.
    package var memory: Duration = .seconds(7 * 86_400)
  }

  /// The position of a cursor.
  package struct Place: Hashable, Sendable {
    /// The number of the epoch that the offset belongs to.
    package var epoch: UInt64
    /// The offset of the first uncommitted record.
    package var nextOffset: UInt64
  }

  /// The right of a subscription to commit. Valid until another subscription takes the cursor, or it is moved or deleted.
  package struct Ticket: Hashable, Sendable {
    fileprivate let slot: Int
    fileprivate let generation: UInt64
  }

  /// Why a ticket is no longer valid.
  package enum Loss: Hashable, Sendable {
    case taken
    case moved
    case deleted
  }

  /// The subscription that uses a cursor.
  package struct Holder: Sendable {
    /// Notifies it that its ticket is no longer valid. Called without a lock, on any loop.
    package var lose: @Sendable (Ticket, Loss) -> Void

    package init(lose: @escaping @Sendable (Ticket, Loss) -> Void) { self.lose = lose }
  }

  /// The subscription that has lost a cursor, to be notified.
  package struct FormerHolder: Sendable {
    fileprivate let holder: Holder
    fileprivate let ticket: Ticket
    fileprivate let loss: Loss

    package func notify() { holder.lose(ticket, loss) }
  }

  /// The result of moving or deleting a cursor.
  package struct Change: Sendable {
    package var former: FormerHolder?
  }

  /// A description of a cursor.
  struct Summary: Hashable, Sendable {
    package var name: String
    package var place: Place
    var isUsed: Bool
    /// For how long it has been unused.
    package var idle: Duration
  }

  private struct Entry {
    var name: String
    var place: Place
    /// Distinguishes the tickets of successive uses, over all entries.
    var generation: UInt64
    /// Nil while it is unused.
    var holder: Holder?
    /// When its subscription left, or it was created; valid while it is unused.
    var since: MonotonicTime
    /// It was moved and hasn't been used since: a subscription that only resumes would continue elsewhere.
    var isMoved = false
    /// The store has a cursor of that name, at any position.
    var isStored = false
    /// Nil if memory isn't counted.
    var charge: KeptAccount.Charge?
  }

  private let limits: Limits
  /// The topic's charge, which includes removed names that the store still has; nil if memory isn't counted.
  private let kept: KeptAccount.Charge?
  private var entries: [Entry?] = []
  private var freeSlots: [Int] = []
  private var slots: [String: Int] = [:]
  private var generations: UInt64 = 0
  /// Names removed since the last ``takeForgotten()``; nil if the table isn't stored.
  private var forgotten: Set<String>?

  /// - Parameter isKept: whether the table is stored, so that removed names must be deleted there: see ``takeForgotten()``.
  init(limits: Limits, isKept: Bool = false, kept: KeptAccount.Charge? = nil) {
    self.limits = limits
    self.kept = kept
    forgotten = isKept ? [] : nil
  }

  /// The number of cursors, expired ones included.
  package var count: Int { slots.count }

  /// The result of looking up a cursor.
  package struct Finding: Hashable, Sendable {
    package var place: Place
    /// Whether it was moved and hasn't been used since.
    var isMoved: Bool
  }

  package func find(_ name: String, now: MonotonicTime) -> Finding? {
    guard let entry = entry(name), !isExpired(entry, now) else { return nil }
    return Finding(place: entry.place, isMoved: entry.isMoved)
  }

  /// Gives a cursor to a subscription and moves it to that place; creates it if necessary.
  ///
  /// - Parameters:
  ///   - charge: the charge for a new cursor.
  ///   - others: the number of groups, which count towards the same limit.
  /// - Returns: nil if the limit is reached.
  package mutating func use(
    _ name: String, at place: Place, _ holder: Holder, charge: KeptAccount.Charge? = nil,
    besides others: Int = 0, now: MonotonicTime
  ) -> (ticket: Ticket, former: FormerHolder?)? {
    put(name, at: place, holder, charge, losing: .taken, besides: others, now: now)
  }

  /// Moves the cursor forward to that offset. Does nothing if the ticket is no longer valid, or the cursor is already at that offset or beyond.
  ///
  /// - Returns: the name of the cursor, if it has moved.
  @discardableResult
  package mutating func commit(_ ticket: Ticket, through offset: UInt64) -> String? {
    guard isCurrent(ticket), let entry = entries[ticket.slot], entry.place.nextOffset < offset else {
      return nil
    }
    entries[ticket.slot]?.place.nextOffset = offset
    return entry.name
  }

  /// Ends a subscription's use of a cursor. The cursor is kept for a while.
  package mutating func leave(_ ticket: Ticket, now: MonotonicTime) {
    guard isCurrent(ticket) else { return }
    entries[ticket.slot]?.holder = nil
    entries[ticket.slot]?.since = now
  }

  /// Moves a cursor; creates it if necessary.
  ///
  /// - Parameter charge: the charge for a new cursor.
  /// - Returns: nil if the limit is reached.
  package mutating func move(
    _ name: String, to place: Place, charge: KeptAccount.Charge? = nil, besides others: Int = 0,
    now: MonotonicTime
  ) -> Change? {
    put(name, at: place, nil, charge, losing: .moved, besides: others, now: now).map {
      Change(former: $0.former)
    }
  }

  /// - Returns: nil if there is no cursor of that name.
  package mutating func delete(_ name: String, now: MonotonicTime) -> Change? {
    guard let slot = slots[name], let entry = entries[slot], !isExpired(entry, now) else { return nil }
    let former = former(slot, .deleted)
    forget(slot)
    return Change(former: former)
  }

  /// All cursors that haven't expired, in no order.
  func summaries(now: MonotonicTime) -> [Summary] {
    entries.compactMap { entry in
      guard let entry, !isExpired(entry, now) else { return nil }
      return Summary(
        name: entry.name, place: entry.place, isUsed: entry.holder != nil,
        idle: entry.holder == nil ? now - entry.since : .zero)
    }
  }

  /// Calls `body` for the cursors in at most `count` slots from `slot` on, in no order.
  ///
  /// - Returns: the slot with which to continue; nil after the last one.
  func visit(
    from slot: Int, atMost count: Int, now: MonotonicTime,
    _ body: (_ name: String, _ place: Place, _ isUsed: Bool, _ since: MonotonicTime) -> Void
  ) -> Int? {
    let end = min(slot + count, entries.count)
    for index in min(slot, end)..<end {
      guard let entry = entries[index], !isExpired(entry, now) else { continue }
      body(entry.name, entry.place, entry.holder != nil, entry.since)
    }
    return end < entries.count ? end : nil
  }

  // MARK: Storage

  /// The cursor of that name, expired or not.
  package func place(of name: String) -> Finding? {
    entry(name).map { Finding(place: $0.place, isMoved: $0.isMoved) }
  }

  /// Adds a cursor from the store, unused since `now`. Does nothing if the table already has one of that name.
  package mutating func restore(_ name: String, _ found: Finding, now: MonotonicTime) {
    guard slots[name] == nil else { return }
    // The limit may be lower than before, but applies only to new cursors.
    let charge = kept.map { $0.account.take(Self.bytes(of: name)) }
    let slot = add(name, at: found.place, charge, isMoved: found.isMoved, now: now)
    entries[slot]?.isStored = true
  }

  /// Notes that the store has a cursor of that name.
  mutating func stored(_ name: String) {
    if let slot = slots[name] { entries[slot]?.isStored = true }
  }

  func isStored(_ name: String) -> Bool { entry(name)?.isStored ?? false }

  /// Returns the names that were removed since the last call and haven't been used again, in no order.
  mutating func takeForgotten() -> [String] {
    guard let forgotten, !forgotten.isEmpty else { return [] }
    self.forgotten = []
    kept?.add(-forgotten.reduce(0) { $0 + Self.bytes(ofForgotten: $1) })
    return forgotten.filter { slots[$0] == nil }
  }

  // MARK: -

  private func entry(_ name: String) -> Entry? {
    slots[name].flatMap { entries[$0] }
  }

  private func isExpired(_ entry: Entry, _ now: MonotonicTime) -> Bool {
    entry.holder == nil && entry.since + limits.memory <= now
  }

  private func isCurrent(_ ticket: Ticket) -> Bool {
    entries[ticket.slot]?.generation == ticket.generation
  }

  private func former(_ slot: Int, _ loss: Loss) -> FormerHolder? {
    guard let entry = entries[slot], let holder = entry.holder else { return nil }
    return FormerHolder(holder: holder, ticket: Ticket(slot: slot, generation: entry.generation), loss: loss)
  }

  private mutating func newGeneration() -> UInt64 {
    generations += 1
    return generations
  }

  /// Moves a cursor to a place, with a new holder or unused.
  private mutating func put(
    _ name: String, at place: Place, _ holder: Holder?, _ charge: KeptAccount.Charge?, losing loss: Loss,
    besides others: Int, now: MonotonicTime
  ) -> (ticket: Ticket, former: FormerHolder?)? {
    guard let slot = slot(name, at: place, charge, besides: others, now: now) else { return nil }
    let former = former(slot, loss)
    let generation = newGeneration()
    entries[slot]?.place = place
    entries[slot]?.holder = holder
    entries[slot]?.since = now
    entries[slot]?.generation = generation
    entries[slot]?.isMoved = holder == nil
    return (Ticket(slot: slot, generation: generation), former)
  }

  /// The slot of that name, a new one if necessary.
  private mutating func slot(
    _ name: String, at place: Place, _ charge: KeptAccount.Charge?, besides others: Int, now: MonotonicTime
  ) -> Int? {
    if let slot = slots[name] {
      // An expired cursor that is used again is charged to the account of its new user.
      if let charge { entries[slot]?.charge = charge }
      return slot
    }
    let limit = max(limits.cursors - others, 0)
    if slots.count >= limit { forgetExpired(now) }
    guard slots.count < limit else { return nil }
    return add(name, at: place, charge, isMoved: false, now: now)
  }

  private mutating func add(
    _ name: String, at place: Place, _ charge: KeptAccount.Charge?, isMoved: Bool, now: MonotonicTime
  ) -> Int {
    let entry = Entry(
      name: name, place: place, generation: newGeneration(), holder: nil, since: now, isMoved: isMoved,
      charge: charge)
    let slot = freeSlots.popLast() ?? entries.count
    if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
    slots[name] = slot
    return slot
  }

  /// Bytes that a cursor of that name keeps.
  static func bytes(of name: String) -> Int { KeptMemory.cursor + 2 * name.utf8.count }

  private static func bytes(ofForgotten name: String) -> Int { 48 + name.utf8.count }

  private mutating func forgetExpired(_ now: MonotonicTime) {
    for slot in entries.indices {
      if let entry = entries[slot], isExpired(entry, now) { forget(slot) }
    }
  }

  private mutating func forget(_ slot: Int) {
    if let entry = entries[slot] {
      slots[entry.name] = nil
      if forgotten?.insert(entry.name).inserted == true { kept?.add(Self.bytes(ofForgotten: entry.name)) }
    }
    entries[slot] = nil
    freeSlots.append(slot)
  }
}

extension TopicLimits {
  var cursorTable: CursorTable.Limits { CursorTable.Limits(cursors: cursors, memory: cursorMemory) }
}
