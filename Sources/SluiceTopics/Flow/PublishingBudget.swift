import SluiceSession
import SluiceWire

/// The outstanding grants of a topic's producers, and the rule by which they share the limit.
///
/// A value, and the only place that decides it: it takes the limit that the topic's subscribers, disk and memory set, and returns what one producer gets. A
/// grant can't be taken back, so no producer gets more than its share of the limit; otherwise an idle producer would make the others wait. When the grants
/// of others leave nothing, a producer without any still gets a single record, or byte: the log has room for it.
///
/// ```
///  granted = used + outstanding        without a publication nothing is outstanding
/// ```
///
/// Debug builds check both after each change.
package struct PublishingBudget: Hashable, Sendable {
  package typealias Allowance = PublishAllowance

  /// The number of publications.
  package private(set) var publications: Int
  /// The grants that all publications together have yet to use: the sum of their parts, see ``Topic/grantViolation``.
  package private(set) var outstanding = Allowance()
  /// Records granted since the topic was made.
  private var granted: UInt64 = 0
  private var used: UInt64 = 0

  init(publications: Int = 0) {
    self.publications = publications
  }

  package mutating func open() { publications += 1 }

  /// Removes a publication, and returns its unused grants.
  package mutating func close(returning held: Allowance) {
    publications -= 1
    spend(held)
  }

  /// Grants a publication more.
  ///
  /// - Parameters:
  ///   - held: the unused part of the publication's earlier grants.
  ///   - limit: what all publications together may have; nil when only the window limits them. The grants are counted nevertheless: the topic may get a
  ///     limit later.
  ///   - window: the most that one publication may have.
  package mutating func grant(to held: Allowance, limit: FlowLimit?, window: Allowance) -> Allowance {
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

  /// Counts what a batch has used of the grants, also when the batch is refused.
  package mutating func spend(_ allowance: Allowance) {
    outstanding.subtract(allowance)
    used &+= allowance.records
    assert(violation == nil, violation ?? "")
  }

  /// The increment for a publication that only its window limits.
  package static func share(to held: Allowance, window: Allowance) -> Allowance {
    Allowance(
      records: held.records <= window.records / 2 ? window.records - held.records : 0,
      bytes: held.bytes <= window.bytes / 2 ? window.bytes - held.bytes : 0)
  }

  private func share(_ held: UInt64, _ outstanding: UInt64, limit: UInt64, window: UInt64) -> UInt64 {
    guard limit > 0 else { return 0 }
    let share = min(max(limit / UInt64(max(publications, 1)), 1), window)
    // Grants come in portions: the next one follows when half of the share is used up.
    guard held <= share / 2 else { return 0 }
    let room = limit > outstanding ? limit - outstanding : 0
    let more = min(share - held, room)
    return more > 0 || held > 0 ? more : 1
  }

  /// A description of a broken invariant; nil when all hold.
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
