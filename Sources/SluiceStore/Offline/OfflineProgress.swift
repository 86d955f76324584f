/// Reports the progress of a long operation.
struct OfflineProgress {
  private let report: (UInt64) -> Bool
  private var bytes: UInt64 = 0

  /// - Parameter report: is told the bytes of batches that were looked at so far, and returns whether to go on.
  init(_ report: @escaping (UInt64) -> Bool) {
    self.report = report
  }

  /// So many bytes more. Returns whether to go on.
  mutating func add(_ count: Int) -> Bool {
    bytes += UInt64(count)
    return report(bytes)
  }
}

extension StoreError {
  /// The caller stopped the operation.
  static var stopped: StoreError { StoreError(.failed, "it was stopped before it was through") }
}
