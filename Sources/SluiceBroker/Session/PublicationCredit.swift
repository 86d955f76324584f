import SluiceWire

/// What a publication may still publish: records, and bytes of their batches.
struct PublicationCredit: Hashable, Sendable {
  private(set) var records: Credit
  private(set) var bytesGranted: UInt64
  private(set) var bytesSpent: UInt64 = 0

  /// Nothing granted yet; records count from a sequence, bytes from 0.
  init(startingAt sequence: UInt64) {
    records = Credit(spent: sequence)
    bytesGranted = 0
  }

  /// Bytes that may be published now; ``Credit/unlimited`` when there is no limit.
  var bytesAvailable: UInt64 {
    if bytesGranted == Credit.unlimited { return Credit.unlimited }
    return bytesGranted > bytesSpent ? bytesGranted - bytesSpent : 0
  }

  /// What is left of the grants.
  var held: PublishingBudget.Allowance {
    PublishingBudget.Allowance(records: records.available, bytes: bytesAvailable)
  }

  /// Takes a batch. Its last record may end beyond the bytes that were granted, if it begins before their end.
  ///
  /// - Parameter start: how many bytes of the batch are in front of its last record.
  /// - Returns: false, and nothing is spent, when that is more than was granted.
  mutating func spend(records count: UInt64, bytes: Int, beforeLast start: Int) -> Bool {
    guard bytesAvailable > UInt64(start), records.spend(count) else { return false }
    bytesSpent &+= UInt64(bytes)
    return true
  }

  /// How much of what was granted a batch, that was the last to be spent, has used up.
  func used(records count: UInt64, bytes: Int) -> PublishingBudget.Allowance {
    let excess = bytesSpent > bytesGranted ? bytesSpent - bytesGranted : 0
    return PublishingBudget.Allowance(records: count, bytes: UInt64(bytes) - min(UInt64(bytes), excess))
  }

  /// Grants more of both, from here.
  ///
  /// - Returns: false when it is nothing.
  mutating func add(_ more: PublishingBudget.Allowance) -> Bool {
    guard more != PublishingBudget.Allowance() else { return false }
    _ = records.raise(to: records.granted + more.records)
    if bytesGranted != Credit.unlimited {
      let sum = max(bytesGranted, bytesSpent).addingReportingOverflow(more.bytes)
      if more.bytes > 0 { bytesGranted = sum.overflow ? Credit.unlimited : sum.partialValue }
    }
    return true
  }
}
