import SluiceTopics
import SluiceWire

/// Divides the demand of a subscription to a pattern among the nodes that serve its topics.
///
/// The demand is for the records of all nodes together, and no node may send records that weren't requested. If it were divided in advance, nodes without
/// records would keep a part of it. Granting it to several nodes would exceed it. So it is lent.
///
/// A node that has records but no loan requests a share with ``Offer``. It keeps the unused rest for its next records, which then need no round trip. When
/// another node needs demand, the rest is recalled. Waiting nodes are served in the order in which they began to wait. Unlimited demand isn't lent: each
/// node gets a ``DemandWindow``.
///
/// A value without I/O: events are passed in, and ``settle(_:)`` returns the frames to send.
struct PatternLoans {
  /// A frame to send to a node.
  struct Action: Hashable {
    var part: Int
    var frame: Lend
  }

  private struct Part {
    /// The totals of its stream: records lent, records received or given back, and records given back.
    var lent: UInt64 = 0
    var used: UInt64 = 0
    var returned: UInt64 = 0
    /// Records received, on this stream and earlier ones, that weren't written to the subscriber yet.
    var unwritten: UInt64 = 0
    var window = DemandWindow()
    /// The time since which it has records but no loan.
    var waitsSince: UInt64?
    var isRecalled = false
    var lastLoan: UInt64 = 0
    /// Whether it has a topic with paced producers.
    var isPaced = false
    var pacedThrough: UInt64 = 0

    var outstanding: UInt64 { lent - used }
    /// How many more records may be lent to it within its window.
    var room: UInt64 {
      let taken = outstanding + unwritten
      return taken < window.records ? window.records - taken : 0
    }
  }

  /// The parts with an open stream, and those with records that weren't written.
  private var parts: [Int: Part] = [:]
  private var open: Set<Int> = []
  /// The time since which topics of the subscriber's own node have records but no demand.
  private var ownSince: UInt64?
  private var clock: UInt64 = 0
  /// The part of the demand that is lent, or used by records that weren't written yet.
  private(set) var reserved: UInt64 = 0

  // MARK: Events

  /// Called when a node's stream has begun.
  mutating func begin(_ part: Int) {
    end(part)
    open.insert(part)
    parts[part] = Part(unwritten: parts[part]?.unwritten ?? 0)
  }

  /// Called when a node's stream has ended. Its loan can be lent to others.
  mutating func end(_ part: Int) {
    guard open.remove(part) != nil, var state = parts[part] else { return }
    reserved -= state.outstanding
    state.used = state.lent
    state.waitsSince = nil
    parts[part] = state.unwritten > 0 ? state : nil
  }

  /// Returns how many records a node may still send.
  func outstanding(_ part: Int) -> UInt64 { open.contains(part) ? parts[part]?.outstanding ?? 0 : 0 }

  /// Counts received records.
  ///
  /// - Parameter isWanted: false for records that are dropped.
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

  /// Counts records of a node that were written to the subscriber.
  mutating func written(_ records: UInt64, from part: Int) {
    guard var state = parts[part] else { return }
    state.unwritten -= records
    reserved -= records
    parts[part] = state.unwritten > 0 || open.contains(part) ? state : nil
  }

  /// Applies an OFFER of a node.
  ///
  /// - Throws: ``ErrorCode/malformedFrame`` when it gives back more than was lent.
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

  /// Called after a turn of the topics of the subscriber's own node.
  mutating func ownTurnEnded(isUsed: Bool, waits: Bool) {
    if isUsed || !waits { ownSince = nil }
    if waits, ownSince == nil { ownSince = tick() }
  }

  private mutating func tick() -> UInt64 {
    clock += 1
    return clock
  }

  // MARK: Loans

  /// Divides the free part of the demand. Returns the frames to send.
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

  /// Fills a node's window. Returns false if the change is too small for a frame.
  private mutating func extend(_ part: Int) -> Bool {
    guard let state = parts[part], state.room >= max(state.window.records / 4, 1) else { return false }
    lend(state.room, to: part)
    return true
  }

  /// Lends to nodes that wait, then to nodes that use their loans. If that isn't enough, it recalls the loans of others.
  private mutating func divide(_ free: UInt64) -> Set<Int> {
    var (free, changed) = (free, Set<Int>())
    // The subscriber's own node uses the free part directly, so its share stays free.
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

  /// Recalls the unused loans of nodes.
  ///
  /// - Parameter served: nodes that have just got a loan.
  private mutating func recall(beside served: Set<Int>) -> Set<Int> {
    let lenders = open.subtracting(served).filter { part in
      parts[part].map { $0.outstanding > 0 && !$0.isRecalled && $0.waitsSince == nil } ?? false
    }
    for part in lenders { parts[part]?.isRecalled = true }
    return lenders
  }

  /// Updates the demand that paces producers at other nodes, if it has changed much.
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
