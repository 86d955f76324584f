/// One side's account of a stream's demand: what was granted in all, and what was spent of it.
///
/// Grants are cumulative and only the largest counts, so that a grant that is repeated, or arrives late, changes nothing. Unlimited,
/// once given, stays.
public struct Credit: Hashable, Sendable {
  /// The grant that means no limit.
  @inlinable public static var unlimited: UInt64 { .max }

  /// Records that may be sent in all.
  @inlinable public var granted: UInt64 { grantedInAll }
  /// Records that were sent. At most `granted`.
  @inlinable public var spent: UInt64 { spentInAll }

  // Each delivery spends: callers in other modules get the few instructions, not a call.
  @usableFromInline var grantedInAll: UInt64
  @usableFromInline var spentInAll: UInt64

  /// - Parameters:
  ///   - granted: records that may be sent in all.
  ///   - spent: what the count begins at.
  public init(granted: UInt64 = 0, spent: UInt64 = 0) {
    grantedInAll = max(granted, spent)
    spentInAll = spent
  }

  /// Records that may be sent now; ``unlimited`` when there is no limit.
  @inlinable public var available: UInt64 {
    granted == Self.unlimited ? Self.unlimited : granted &- spent
  }

  /// Takes over a grant. Returns true when it allows more than before.
  @inlinable public mutating func raise(to granted: UInt64) -> Bool {
    guard granted > self.granted else { return false }
    grantedInAll = granted
    return true
  }

  /// Spends `count` records.
  ///
  /// - Returns: false, and nothing is spent, when that is more than is available.
  @inlinable public mutating func spend(_ count: UInt64) -> Bool {
    guard count <= available else { return false }
    spentInAll &+= count
    return true
  }
}
