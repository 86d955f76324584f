import SluiceIO

/// A topic's durable cursors by name: places that outlive the subscriptions that move them.
///
/// Each is used by one subscription at a time; who comes later takes it over, and whoever had it is told. Bounded: what nobody has used for too long is forgotten,
/// and beyond the limit no new one is made.
///
/// A value without a lock and without I/O: it belongs to its topic's state. What is kept beyond the process to have it
/// back is ``place(of:)`` and the name.
struct CursorTable {
  struct Limits: Sendable {
    /// Cursors remembered, used or not.
    var cursors = 10_000
    /// How long one is remembered that nobody uses.
    var memory: Duration = .seconds(7 * 86_400)
  }

  /// Where a cursor stands.
  struct Place: Hashable, Sendable {
    /// Of the epoch in which the offset means something.
    var epoch: UInt64
    /// That of the first record which isn't committed.
    var nextOffset: UInt64
  }

  /// What a subscription commits with. Good until the cursor is somebody else's, moved or deleted.
  struct Ticket: Hashable, Sendable {
    fileprivate let slot: Int
    fileprivate let generation: UInt64
  }

  /// Why a ticket isn't good any more.
  enum Loss: Hashable, Sendable {
    case taken
    case moved
    case deleted
  }

  /// Who uses a cursor.
  struct Holder: Sendable {
    /// To be told that its ticket isn't good any more. Called without a lock, on any loop.
    var lose: @Sendable (Ticket, Loss) -> Void
  }

  /// Who has used one before, and has to be told.
  struct Loser: Sendable {
    fileprivate let holder: Holder
    fileprivate let ticket: Ticket
    fileprivate let loss: Loss

    func tell() { holder.lose(ticket, loss) }
  }

  /// A cursor was moved or deleted, and whoever used it must be told.
  struct Change: Sendable {
    var loser: Loser?
  }

  /// What is known of a cursor without using it.
  struct Summary: Hashable, Sendable {
    var name: String
    var place: Place
    var isUsed: Bool
    /// For how long nobody has used it.
    var idle: Duration
  }

  private struct Entry {
    var name: String
    var place: Place
    /// Counts who came, over all entries: tickets are told apart by it.
    var generation: UInt64
    /// Nil while nobody uses it.
    var holder: Holder?
    /// When it was left, or made; of use while nobody uses it.
    var since: MonotonicTime
    /// It was put elsewhere, and nobody has begun there yet: one who only comes back would go on somewhere else.
    var isMoved = false
    /// There is one of that name beyond the process, wherever it stands there.
    var isStored = false
  }

  private let limits: Limits
  /// Nil where memory isn't counted.
  private let kept: KeptMemory.Share?
  private var entries: [Entry?] = []
  private var freeSlots: [Int] = []
  private var slots: [String: Int] = [:]
  private var generations: UInt64 = 0
  /// Names that were forgotten since they were taken last; nil where nobody takes them.
  private var forgotten: Set<String>?

  /// - Parameter isKept: whether the table is kept beyond the process, so that what it forgets must be dropped there: see ``takeForgotten()``.
  init(limits: Limits, isKept: Bool = false, kept: KeptMemory.Share? = nil) {
    self.limits = limits
    self.kept = kept
    forgotten = isKept ? [] : nil
  }

  /// Cursors known, among them those that are due to be forgotten.
  var count: Int { slots.count }

  /// What a subscription finds under a name.
  struct Finding: Hashable, Sendable {
    var place: Place
    /// Nobody has begun there since it was put there.
    var isMoved: Bool
  }

  func find(_ name: String, now: MonotonicTime) -> Finding? {
    guard let entry = entry(name), !isExpired(entry, now) else { return nil }
    return Finding(place: entry.place, isMoved: entry.isMoved)
  }

  /// Gives a cursor to a subscription, at that place, which is the cursor's from now on; makes it if there is none.
  ///
  /// - Parameter others: what counts towards the limit besides.
  /// - Returns: nil when there are as many as may be.
  mutating func use(
    _ name: String, at place: Place, _ holder: Holder, besides others: Int = 0, now: MonotonicTime
  ) -> (ticket: Ticket, loser: Loser?)? {
    guard let slot = slot(name, at: place, besides: others, now: now) else { return nil }
    let loser = loser(slot, .taken)
    let generation = newGeneration()
    entries[slot]?.place = place
    entries[slot]?.holder = holder
    entries[slot]?.generation = generation
    entries[slot]?.isMoved = false
    return (Ticket(slot: slot, generation: generation), loser)
  }

  /// Everything before that offset is dealt with. Does nothing when the ticket isn't good any more, or the cursor stands there or beyond.
  ///
  /// - Returns: the name of the cursor, if it has moved.
  @discardableResult
  mutating func commit(_ ticket: Ticket, through offset: UInt64) -> String? {
    guard isCurrent(ticket), let entry = entries[ticket.slot], entry.place.nextOffset < offset else {
      return nil
    }
    entries[ticket.slot]?.place.nextOffset = offset
    return entry.name
  }

  /// The subscription is over. Its cursor is remembered for a while.
  mutating func leave(_ ticket: Ticket, now: MonotonicTime) {
    guard isCurrent(ticket) else { return }
    entries[ticket.slot]?.holder = nil
    entries[ticket.slot]?.since = now
  }

  /// Puts a cursor elsewhere; makes it if there is none.
  ///
  /// - Returns: nil when there are as many as may be.
  mutating func move(
    _ name: String, to place: Place, besides others: Int = 0, now: MonotonicTime
  ) -> Change? {
    guard let slot = slot(name, at: place, besides: others, now: now) else { return nil }
    let loser = loser(slot, .moved)
    let generation = newGeneration()
    entries[slot]?.place = place
    entries[slot]?.holder = nil
    entries[slot]?.since = now
    entries[slot]?.generation = generation
    entries[slot]?.isMoved = true
    return Change(loser: loser)
  }

  /// - Returns: nil when there is none of that name.
  mutating func delete(_ name: String, now: MonotonicTime) -> Change? {
    guard let slot = slots[name], let entry = entries[slot], !isExpired(entry, now) else { return nil }
    let loser = loser(slot, .deleted)
    forget(slot)
    return Change(loser: loser)
  }

  /// All that are remembered, in no order.
  func summaries(now: MonotonicTime) -> [Summary] {
    entries.compactMap { entry in
      guard let entry, !isExpired(entry, now) else { return nil }
      return Summary(
        name: entry.name, place: entry.place, isUsed: entry.holder != nil,
        idle: entry.holder == nil ? now - entry.since : .zero)
    }
  }

  // MARK: What is kept beyond the process

  /// What a name stands for at the moment, used, due to be forgotten or neither.
  func place(of name: String) -> Finding? {
    entry(name).map { Finding(place: $0.place, isMoved: $0.isMoved) }
  }

  /// A cursor that was known before the broker started, and that nobody has used, as far as it is to be remembered, since just now. Does nothing
  /// with one that is known already.
  mutating func restore(_ name: String, _ found: Finding, now: MonotonicTime) {
    guard slots[name] == nil else { return }
    // Not made anew, so it isn't held against the limit: that may be lower than it was.
    let slot = add(name, at: found.place, isMoved: found.isMoved, now: now)
    entries[slot]?.isStored = true
  }

  /// A cursor of that name is kept beyond the process from now on.
  mutating func stored(_ name: String) {
    if let slot = slots[name] { entries[slot]?.isStored = true }
  }

  func isStored(_ name: String) -> Bool { entry(name)?.isStored ?? false }

  /// Which names the table has forgotten since it was asked last, deleted ones among them, and doesn't know again by now: in no order.
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

  private func loser(_ slot: Int, _ loss: Loss) -> Loser? {
    guard let entry = entries[slot], let holder = entry.holder else { return nil }
    return Loser(holder: holder, ticket: Ticket(slot: slot, generation: entry.generation), loss: loss)
  }

  private mutating func newGeneration() -> UInt64 {
    generations += 1
    return generations
  }

  /// The slot of that name, a new one if need be.
  private mutating func slot(
    _ name: String, at place: Place, besides others: Int, now: MonotonicTime
  ) -> Int? {
    if let slot = slots[name] { return slot }
    let limit = max(limits.cursors - others, 0)
    if slots.count >= limit { forgetExpired(now) }
    guard slots.count < limit, kept?.isFull != true else { return nil }
    return add(name, at: place, isMoved: false, now: now)
  }

  private mutating func add(_ name: String, at place: Place, isMoved: Bool, now: MonotonicTime) -> Int {
    let entry = Entry(
      name: name, place: place, generation: newGeneration(), holder: nil, since: now, isMoved: isMoved)
    let slot = freeSlots.popLast() ?? entries.count
    if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
    slots[name] = slot
    kept?.add(Self.bytes(of: name))
    return slot
  }

  private static func bytes(of name: String) -> Int { KeptMemory.cursor + 2 * name.utf8.count }

  private static func bytes(ofForgotten name: String) -> Int { 48 + name.utf8.count }

  private mutating func forgetExpired(_ now: MonotonicTime) {
    for slot in entries.indices {
      if let entry = entries[slot], isExpired(entry, now) { forget(slot) }
    }
  }

  private mutating func forget(_ slot: Int) {
    if let entry = entries[slot] {
      slots[entry.name] = nil
      kept?.add(-Self.bytes(of: entry.name))
      if forgotten?.insert(entry.name).inserted == true { kept?.add(Self.bytes(ofForgotten: entry.name)) }
    }
    entries[slot] = nil
    freeSlots.append(slot)
  }
}
