import SluiceWire

/// The remaining credit of a publication: records, and bytes of their batches.
package struct PublicationCredit: Hashable, Sendable {
  package private(set) var records: Credit
  package private(set) var bytesGranted: UInt64
  package private(set) var bytesSpent: UInt64 = 0

  /// Nothing granted yet; records count from a sequence, bytes from 0.
  package init(startingAt sequence: UInt64) {
    records = Credit(spent: sequence)
    bytesGranted = 0
  }

  /// Bytes that may be published now; ``Credit/unlimited`` when there is no limit.
  package var bytesAvailable: UInt64 {
    if bytesGranted == Credit.unlimited { return Credit.unlimited }
    return bytesGranted > bytesSpent ? bytesGranted - bytesSpent : 0
  }

  /// The unused part of the grants.
  package var held: PublishAllowance {
    PublishAllowance(records: records.available, bytes: bytesAvailable)
  }

  /// Takes a batch. Its last record may end beyond the bytes that were granted, if it begins before their end.
  ///
  /// - Parameter start: how many bytes of the batch are in front of its last record.
  /// - Returns: false, and nothing is spent, when that is more than was granted.
  package mutating func spend(records count: UInt64, bytes: Int, beforeLast start: Int) -> Bool {
    guard bytesAvailable > UInt64(start), records.spend(count) else { return false }
    bytesSpent &+= UInt64(bytes)
    return true
  }

  /// How much of what was granted a batch, that was the last to be spent, has used up.
  package func used(records count: UInt64, bytes: Int) -> PublishAllowance {
    let excess = bytesSpent > bytesGranted ? bytesSpent - bytesGranted : 0
    return PublishAllowance(records: count, bytes: UInt64(bytes) - min(UInt64(bytes), excess))
  }

  /// Grants more of both, from here.
  ///
  /// - Returns: false when it is nothing.
  package mutating func add(_ more: PublishAllowance) -> Bool {
    guard more != PublishAllowance() else { return false }
    _ = records.raise(to: records.granted + more.records)
    if bytesGranted != Credit.unlimited {
      let sum = max(bytesGranted, bytesSpent).addingReportingOverflow(more.bytes)
      if more.bytes > 0 { bytesGranted = sum.overflow ? Credit.unlimited : sum.partialValue }
    }
    return true
  }

  /// Takes over totals that another node has granted.
  ///
  /// - Returns: whether they allow more than before.
  package mutating func raise(to totals: Demand) -> Bool {
    let isMore = records.raise(to: totals.grantedThrough)
    guard totals.bytesThrough > bytesGranted else { return isMore }
    bytesGranted = totals.bytesThrough
    return true
  }
}

/// The remaining credit of one publication.
package struct PublishAllowance: Hashable, Sendable {
  package var records: UInt64
  package var bytes: UInt64

  package init(records: UInt64 = 0, bytes: UInt64 = 0) {
    self.records = records
    self.bytes = bytes
  }

  /// Adds up; unlimited credit stays unlimited.
  package mutating func add(_ other: PublishAllowance) {
    records = Self.sum(records, other.records)
    bytes = Self.sum(bytes, other.bytes)
  }

  /// Never below zero; unlimited credit stays unlimited.
  package mutating func subtract(_ other: PublishAllowance) {
    if records != .max { records -= min(records, other.records) }
    if bytes != .max { bytes -= min(bytes, other.bytes) }
  }

  private static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let sum = left.addingReportingOverflow(right)
    return sum.overflow ? .max : sum.partialValue
  }
}
