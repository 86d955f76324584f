import SluiceSession
import SluiceWire

/// What a topic's producers have been granted and have not used yet, and how what may be granted is shared among them.
///
/// A value, and the only place where that is decided: how far the topic's subscribers, disk and memory let producers go comes in, and what one producer gets
/// comes out. A grant can't be taken back, so no producer gets more than its share of the limit, lest one that rests keeps the others waiting. When what rests
/// with others leaves nothing, a producer that has nothing gets a single record, or byte, all the same: the log has room for it.
///
/// ```
///  granted = used + outstanding        without a publication nothing is outstanding
/// ```
///
/// Debug builds check both after each change.
struct PublishingBudget: Hashable, Sendable {
  typealias Allowance = PublishAllowance

  /// How many publications there are.
  private(set) var publications: Int
  /// What all publications together may still use. Equals the sum of what each one has: see ``Topic/grantViolation``.
  private(set) var outstanding = Allowance()
  /// Records, since the topic was made.
  private var granted: UInt64 = 0
  private var used: UInt64 = 0

  init(publications: Int = 0) {
    self.publications = publications
  }

  mutating func open() { publications += 1 }

  /// A publication leaves, with what it was granted and hasn't used.
  mutating func close(returning held: Allowance) {
    publications -= 1
    spend(held)
  }

  /// Grants a publication more.
  ///
  /// - Parameters:
  ///   - held: what the publication has left of earlier grants.
  ///   - limit: what all publications together may have; nil where nothing but the window limits them. What they get then is counted all the same: the topic
  ///     may be given a limit later.
  ///   - window: the most that one may have.
  mutating func grant(to held: Allowance, limit: FlowLimit?, window: Allowance) -> Allowance {
    var more = Self.share(to: held, window: window)
    if let limit {
      guard case .ahead(let records, let bytes) = limit else { return Allowance() }
      more = Allowance(
        records: share(held.records, outstanding.records, limit: records, window: window.records),
        bytes: share(held.bytes, outstanding.bytes, limit: bytes, window: window.bytes))
    }
    outstanding.add(more)
    granted &+= more.records
    assert(violation == nil, violation ?? "")
    return more
  }

  /// A batch has used what was granted, whatever becomes of the batch.
  mutating func spend(_ allowance: Allowance) {
    outstanding.subtract(allowance)
    used &+= allowance.records
    assert(violation == nil, violation ?? "")
  }

  /// What a publication gets, on top of what it has, where nothing but its window limits it.
  static func share(to held: Allowance, window: Allowance) -> Allowance {
    Allowance(
      records: held.records <= window.records / 2 ? window.records - held.records : 0,
      bytes: held.bytes <= window.bytes / 2 ? window.bytes - held.bytes : 0)
  }

  private func share(_ held: UInt64, _ outstanding: UInt64, limit: UInt64, window: UInt64) -> UInt64 {
    guard limit > 0 else { return 0 }
    let share = min(max(limit / UInt64(max(publications, 1)), 1), window)
    // Grants come in portions: half of the share is used up before there is more.
    guard held <= share / 2 else { return 0 }
    let room = limit > outstanding ? limit - outstanding : 0
    let more = min(share - held, room)
    return more > 0 || held > 0 ? more : 1
  }

  /// How the budget contradicts itself; nil when it doesn't.
  var violation: String? {
    if granted &- used != outstanding.records {
      return "\(granted) records granted, \(used) used, and \(outstanding.records) outstanding"
    }
    // Bytes without a limit aren't counted down.
    if publications == 0, outstanding.records > 0 || 1..<UInt64.max ~= outstanding.bytes {
      return "\(outstanding) outstanding without a publication"
    }
    return nil
  }
}
