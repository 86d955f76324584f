/// One side's account of a stream's demand: what was granted in all, and what was spent of it.
///
/// Grants are cumulative and only the largest counts, so that a grant that is repeated, or arrives late, changes nothing. Unlimited,
/// once given, stays.
public struct Credit: Hashable, Sendable {
  /// The grant that means no limit.
  public static let unlimited = UInt64.max

  /// Records that may be sent in all.
  public private(set) var granted: UInt64
  /// Records that were sent. At most `granted`.
  public private(set) var spent: UInt64

  /// - Parameters:
  ///   - granted: records that may be sent in all.
  ///   - spent: the start of the count.
  public init(granted: UInt64 = 0, spent: UInt64 = 0) {
    self.granted = max(granted, spent)
    self.spent = spent
  }

  /// Records that may be sent now; ``unlimited`` when there is no limit.
  public var available: UInt64 {
    granted == Self.unlimited ? Self.unlimited : granted &- spent
  }

  /// Takes over a grant. Returns true when it allows more than before.
  public mutating func raise(to granted: UInt64) -> Bool {
    guard granted > self.granted else { return false }
    self.granted = granted
    return true
  }

  /// Spends `count` records.
  ///
  /// - Returns: false, and nothing is spent, when that is more than is available.
  public mutating func spend(_ count: UInt64) -> Bool {
    guard count <= available else { return false }
    spent &+= count
    return true
  }
}
