/// How many records a node asks of another one at a time, on behalf of one subscription.
///
/// About 256 KiB of records are on their way or waiting for the subscriber; how many that are follows from the records that came. A subscriber
/// that doesn't read holds no more than that in its node's memory, and none of the other streams of the link.
struct DemandWindow {
  /// Before any record has come.
  static let first: UInt64 = 16
  /// Bytes that may wait for one subscriber, with records of at most `record` bytes. Records that become longer of a sudden may reach it.
  static func bound(record: Int) -> Int { max(16 << 20, (Int(first) + 1) * record) }

  private(set) var records = Self.first
  /// Bytes of records to be under way, and the most records.
  private let target: UInt64
  private let most: UInt64

  init(target: UInt64 = 256 << 10, most: UInt64 = 8_192) {
    self.target = target
    self.most = most
  }

  /// Takes note of a batch. The window doubles at most while its records come.
  mutating func received(_ count: UInt64, bytes: Int) {
    let fit = max(target * count / UInt64(max(bytes, 1)), 1)
    records = min(fit, records + count, most)
  }

  /// How far the owner may go, with records up to `written` written to the subscriber.
  ///
  /// - Parameters:
  ///   - granted: the subscriber's demand.
  ///   - passed: how far the owner may go by now.
  /// - Returns: nil while that is enough.
  func next(granted: UInt64, written: UInt64, passed: UInt64) -> UInt64? {
    let through = min(granted, written.addingReportingOverflow(records).partialValue)
    guard through > passed else { return nil }
    // Not a frame for each record, unless the rest is to be asked for.
    return through == granted || through - passed >= max(records / 4, 1) ? through : nil
  }
}
