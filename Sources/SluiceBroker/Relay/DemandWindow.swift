/// The number of records that a node requests from another one at a time, on behalf of one subscription.
///
/// About 256 KiB of records are in flight or wait for the subscriber. The number of records follows from the size of those received. A subscriber that
/// doesn't read uses at most that much of its node's memory, and doesn't delay other streams of the link.
struct DemandWindow {
  /// The window before any record was received.
  static let first: UInt64 = 16
  /// Limits the bytes that may wait for one subscriber, with records of at most `record` bytes. Only records that suddenly become longer reach it.
  static func bound(record: Int) -> Int { max(16 << 20, (Int(first) + 1) * record) }

  private(set) var records = Self.first
  /// Bytes of records in flight to aim for, and the most records.
  private let target: UInt64
  private let most: UInt64

  init(target: UInt64 = 256 << 10, most: UInt64 = 8_192) {
    self.target = target
    self.most = most
  }

  /// Adapts the window to a received batch. The window at most doubles per window of records.
  mutating func received(_ count: UInt64, bytes: Int) {
    let fit = max(target * count / UInt64(max(bytes, 1)), 1)
    records = min(fit, records + count, most)
  }

  /// Returns the next grant for the owner, when records up to `written` were written to the subscriber.
  ///
  /// - Parameters:
  ///   - granted: the subscriber's demand.
  ///   - passed: the last grant.
  /// - Returns: nil while the last grant is enough.
  func next(granted: UInt64, written: UInt64, passed: UInt64) -> UInt64? {
    let through = min(granted, written.addingReportingOverflow(records).partialValue)
    guard through > passed else { return nil }
    // Avoids a frame per record, unless it completes the subscriber's demand.
    return through == granted || through - passed >= max(records / 4, 1) ? through : nil
  }
}
