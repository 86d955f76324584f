/// The last values of one number at one resolution: a ring of buckets of equal length, each with the mean of its samples.
///
/// A value without a clock: times are milliseconds since 1970, in ascending order. A bucket without samples is empty, which differs from 0.
struct HistoryRing: Sendable {
  /// The length of a bucket in milliseconds.
  let bucket: Int64
  /// The number of buckets.
  let count: Int
  /// By bucket number modulo ``count``; NaN for an empty one. Empty before the first value.
  private var values: [Float] = []
  /// The number of the first bucket that had a value.
  private var first: Int64 = 0
  /// The number of the newest bucket, and the sum and the number of its samples.
  private var newest: Int64 = 0
  private var sum = 0.0
  private var added = 0

  /// The bytes of the values of a full ring.
  var bytes: Int { count * MemoryLayout<Float>.stride }

  /// - Parameters:
  ///   - bucket: milliseconds, at least 1.
  ///   - count: at least 1.
  init(bucket: Int64, count: Int) {
    self.bucket = max(bucket, 1)
    self.count = max(count, 1)
  }

  mutating func add(_ value: Double, at time: Int64) {
    let number = max(time, 0) / bucket
    if values.isEmpty {
      values = Array(repeating: .nan, count: count)
      (first, newest) = (number, number)
    }
    // If the clock was set back, samples are added to the newest bucket.
    if number > newest {
      for passed in newest + 1...min(number, newest + Int64(count)) { values[index(passed)] = .nan }
      newest = number
      (sum, added) = (0, 0)
    }
    sum += value
    added += 1
    values[index(newest)] = Float(sum / Double(added))
  }

  private func index(_ number: Int64) -> Int { Int(number % Int64(count)) }

  /// Returns the values of the buckets that begin in a range of times, oldest first; nil for an empty bucket. The result is limited to the buckets between
  /// the first value and the newest one.
  func values(in times: Range<Int64>) -> (start: Int64, values: [Float?]) {
    guard !values.isEmpty, !times.isEmpty, times.upperBound > 0 else { return (times.lowerBound, []) }
    let oldest = max(newest - Int64(count) + 1, self.first)
    let first = max(oldest, (times.lowerBound + bucket - 1) / bucket)
    let last = min(newest, (times.upperBound - 1) / bucket)
    guard first <= last else { return (times.lowerBound, []) }
    let found = (first...last).map { number -> Float? in
      let value = values[index(number)]
      return value.isNaN ? nil : value
    }
    return (first * bucket, found)
  }
}

/// One number over time, at several resolutions: each sample is added to the ring of each resolution.
struct HistorySeries: Sendable {
  /// A resolution: milliseconds of a bucket, and the number of buckets.
  struct Resolution: Hashable, Sendable {
    var bucket: Int64
    var count: Int

    var span: Int64 { bucket * Int64(count) }
  }

  /// 1 s for 10 minutes, 10 s for 2 hours, and 2 minutes for the whole length.
  ///
  /// - Parameter length: the whole length in milliseconds.
  static func resolutions(for length: Int64) -> [Resolution] {
    [
      Resolution(bucket: 1_000, count: 600), Resolution(bucket: 10_000, count: 720),
      Resolution(bucket: 120_000, count: Int(max(length, 120_000) + 119_999) / 120_000),
    ]
  }

  private var rings: [HistoryRing]

  init(_ resolutions: [Resolution]) {
    rings = resolutions.map { HistoryRing(bucket: $0.bucket, count: $0.count) }
  }

  /// The bytes of the values of a full series.
  static func bytes(_ resolutions: [Resolution]) -> Int {
    resolutions.reduce(0) { $0 + $1.count * MemoryLayout<Float>.stride }
  }

  mutating func add(_ value: Double, at time: Int64) {
    for index in rings.indices { rings[index].add(value, at: time) }
  }

  /// - Parameter resolution: the index of a resolution.
  func values(_ resolution: Int, in times: Range<Int64>) -> (start: Int64, values: [Float?]) {
    rings[resolution].values(in: times)
  }
}
