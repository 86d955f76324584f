/// What came of writing groups of bytes, each of which was on disk before the next.
struct SyncedWrites {
  private(set) var bytes = 0
  private(set) var seconds = 0.0
  /// Of each group, in nanoseconds.
  private var durations: [UInt64] = []

  /// - Parameter duration: nanoseconds.
  mutating func add(bytes: Int, duration: UInt64) {
    self.bytes += bytes
    seconds += Double(duration) / 1e9
    durations.append(duration)
  }

  var megabytesPerSecond: Double { Double(bytes) / seconds / 1e6 }

  /// In milliseconds, as text.
  func percentiles(_ shares: [Double]) -> [String] {
    let sorted = durations.sorted()
    return shares.map { share in
      Statistics.percentile(share, ofSorted: sorted).map { Format.digits(Double($0) / 1e6) } ?? "-"
    }
  }
}
