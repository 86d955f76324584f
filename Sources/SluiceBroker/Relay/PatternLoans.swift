import SluiceTopics
import SluiceWire

/// How the demand of a subscription to a pattern is divided among the nodes that serve its topics.
///
/// The demand is for records of all nodes together, and no node may send what isn't asked for. So it is neither divided beforehand, which would leave it with
/// nodes that have no records, nor told to several nodes. It is lent: a node that has records and no loan left says so (``Offer``) and is lent a share; what it
/// doesn't use stays with it, so that its next records need no round trip, until another one needs it, when it is recalled. Nodes that wait are served in
/// the order in which they began to. Unlimited demand needs none of this: each node gets a ``DemandWindow``.
///
/// A value without I/O: what happens goes in, the loans to be told come out of ``settle(_:)``.
struct PatternLoans {
  /// What a node is to be told.
  struct Action: Hashable {
    var part: Int
    var frame: Lend
  }

  private struct Part {
    /// The totals of its stream: lent, received or given back, given back.
    var lent: UInt64 = 0
    var used: UInt64 = 0
    var returned: UInt64 = 0
    /// Records received, on this stream and earlier ones, that aren't written to the subscriber yet.
    var unwritten: UInt64 = 0
    var window = DemandWindow()
    /// Since when it has records and no loan left.
    var waitsSince: UInt64?
    var isRecalled = false
    var lastLoan: UInt64 = 0
    /// There is a topic whose producers follow their subscribers.
    var isPaced = false
    var pacedThrough: UInt64 = 0

    var outstanding: UInt64 { lent - used }
    /// How many more records it may be lent, so that no more than a window is under way.
    var room: UInt64 {
      let taken = outstanding + unwritten
      return taken < window.records ? window.records - taken : 0
    }
  }

  /// Those with an open stream, and those with records that aren't written.
  private var parts: [Int: Part] = [:]
  private var open: Set<Int> = []
  /// Since when topics of the subscriber's own node have records, and there is no demand for them.
  private var ownSince: UInt64?
  private var clock: UInt64 = 0
  /// Records of the demand that are lent, or received and not written.
  private(set) var reserved: UInt64 = 0

  // MARK: What happens

  /// A node's stream has begun.
  mutating func begin(_ part: Int) {
    end(part)
    open.insert(part)
    parts[part] = Part(unwritten: parts[part]?.unwritten ?? 0)
  }

  /// A node's stream is over: what it was lent can be lent to others.
  mutating func end(_ part: Int) {
    guard open.remove(part) != nil, var state = parts[part] else { return }
    reserved -= state.outstanding
    state.used = state.lent
    state.waitsSince = nil
    parts[part] = state.unwritten > 0 ? state : nil
  }

  /// The records that a node may still send.
  func outstanding(_ part: Int) -> UInt64 { open.contains(part) ? parts[part]?.outstanding ?? 0 : 0 }

  /// Records have come.
  ///
  /// - Parameter isWanted: false when they are dropped.
  /// - Throws: ``ErrorCode/demandExceeded``.
  mutating func received(_ records: UInt64, bytes: Int, from part: Int, isWanted: Bool) throws(WireError) {
    let left = outstanding(part)
    guard records <= left, var state = parts[part] else {
      throw WireError(
        .demandExceeded, "\(records) records of a pattern came, but only \(left) more were requested")
    }
    state.used += records
    state.window.received(records, bytes: bytes)
    if isWanted { state.unwritten += records } else { reserved -= records }
    parts[part] = state
  }

  /// Records of a node were written to the subscriber.
  mutating func written(_ records: UInt64, from part: Int) {
    guard var state = parts[part] else { return }
    state.unwritten -= records
    reserved -= records
    parts[part] = state.unwritten > 0 || open.contains(part) ? state : nil
  }

  /// A node says how its loan stands.
  ///
  /// - Throws: ``ErrorCode/malformedFrame`` when that can't be.
  mutating func offered(_ offer: Offer, by part: Int) throws(WireError) {
    guard open.contains(part), var state = parts[part] else { return }
    guard offer.returned >= state.returned, offer.returned - state.returned <= state.outstanding else {
      throw WireError(.malformedFrame, "OFFER gives \(offer.returned) records back, which weren't lent")
    }
    let back = offer.returned - state.returned
    state.returned += back
    state.used += back
    reserved -= back
    state.isRecalled = false
    state.isPaced = offer.isPaced
    if offer.waits, state.outstanding == 0, state.waitsSince == nil { state.waitsSince = tick() }
    parts[part] = state
  }

  /// A turn of the topics of the subscriber's own node is over.
  mutating func ownTurnEnded(isUsed: Bool, waits: Bool) {
    if isUsed || !waits { ownSince = nil }
    if waits, ownSince == nil { ownSince = tick() }
  }

  private mutating func tick() -> UInt64 {
    clock += 1
    return clock
  }

  // MARK: Loans

  /// Divides what is left of the demand.
  ///
  /// - Parameter credit: the subscriber's demand, and the records that were written to it.
  mutating func settle(_ credit: Credit) -> [Action] {
    var changed: Set<Int> = []
    if credit.granted == Credit.unlimited {
      for part in open { if extend(part) { changed.insert(part) } }
    } else {
      changed = divide(credit.available - min(reserved, credit.available))
    }
    let recalled = changed.filter { parts[$0]?.isRecalled ?? false }
    pace(credit, &changed)
    return changed.sorted().compactMap { part in
      parts[part].map { state in
        Action(
          part: part,
          frame: Lend(
            grantedThrough: state.lent, pacedThrough: state.pacedThrough, recalls: recalled.contains(part)))
      }
    }
  }

  private mutating func lend(_ records: UInt64, to part: Int) {
    guard var state = parts[part] else { return }
    state.lent += records
    state.lastLoan = state.outstanding
    state.waitsSince = nil
    reserved += records
    parts[part] = state
  }

  /// Fills a node's window up. Returns whether that is enough to be told.
  private mutating func extend(_ part: Int) -> Bool {
    guard let state = parts[part], state.room >= max(state.window.records / 4, 1) else { return false }
    lend(state.room, to: part)
    return true
  }

  /// Lends to the nodes that wait, then to those that use what they have. Recalls what others have when that isn't enough.
  private mutating func divide(_ free: UInt64) -> Set<Int> {
    var (free, changed) = (free, Set<Int>())
    // The subscriber's own node takes what is left, and so gets its share by not being lent it.
    var waiting = open.compactMap { part in parts[part]?.waitsSince.map { (since: $0, part: Int?(part)) } }
    if let ownSince { waiting.append((ownSince, nil)) }
    waiting.sort { $0.since < $1.since }
    waiting.removeAll { $0.part.map { parts[$0]?.room == 0 } ?? false }
    for (index, contender) in waiting.enumerated() {
      guard free > 0 else {
        return changed.union(recall(beside: changed))
      }
      var share = max(free / UInt64(waiting.count - index), 1)
      if let part = contender.part, let state = parts[part] {
        share = min(share, state.room)
        lend(share, to: part)
        changed.insert(part)
      }
      free -= share
    }
    let busy = open.subtracting(changed).filter { part in
      parts[part].map { !$0.isRecalled && $0.lastLoan > 0 && $0.outstanding * 2 <= $0.lastLoan } ?? false
    }.sorted()
    for (index, part) in busy.enumerated() {
      guard let state = parts[part] else { continue }
      let share = min(free / UInt64(busy.count - index + 1), state.room)
      guard share >= max(state.lastLoan / 4, 1) else { continue }
      lend(share, to: part)
      free -= share
      changed.insert(part)
    }
    return changed
  }

  /// Has nodes give back what they haven't used.
  ///
  /// - Parameter served: those that have just been lent more.
  private mutating func recall(beside served: Set<Int>) -> Set<Int> {
    let lenders = open.subtracting(served).filter { part in
      parts[part].map { $0.outstanding > 0 && !$0.isRecalled && $0.waitsSince == nil } ?? false
    }
    for part in lenders { parts[part]?.isRecalled = true }
    return lenders
  }

  /// Tells nodes how far producers may go that follow their subscribers, when that has changed much.
  private mutating func pace(_ credit: Credit, _ changed: inout Set<Int>) {
    let unwritten = parts.values.reduce(0) { $0 + $1.unwritten }
    let isUnlimited = credit.granted == Credit.unlimited
    let demand = isUnlimited ? Credit.unlimited : credit.available - min(unwritten, credit.available)
    for part in open {
      guard var state = parts[part], state.isPaced || changed.contains(part) else { continue }
      let told =
        state.pacedThrough == Credit.unlimited
        ? Credit.unlimited : state.pacedThrough - min(state.used, state.pacedThrough)
      if changed.contains(part) || told / 2 > demand || demand / 2 >= max(told, 1)
        || (demand == 0) != (told == 0)
      {
        state.pacedThrough = isUnlimited ? Credit.unlimited : state.used + demand
        parts[part] = state
        changed.insert(part)
      }
    }
  }
}
