import Glibc

/// The moving average of a counter's growth per minute.
///
/// Between two updates the rate counts as constant, so an average is right however rarely it is updated.
struct MQTTLoad: Hashable, Sendable {
  /// The names of the averages, and their time constants in seconds.
  static let spans: [(name: String, seconds: Double)] = [("1min", 60), ("5min", 300), ("15min", 900)]

  private(set) var averages = [Double](repeating: 0, count: spans.count)

  /// - Parameters:
  ///   - growth: of the counter since the last update.
  ///   - seconds: since the last update, more than 0.
  mutating func update(growth: UInt64, seconds: Double) {
    let rate = Double(growth) * 60 / seconds
    for (index, span) in Self.spans.enumerated() {
      averages[index] = rate + (averages[index] - rate) * exp(-seconds / span.seconds)
    }
  }

  /// With two decimal places.
  static func text(_ average: Double) -> String {
    let hundredths = UInt64(max(0, average * 100).rounded())
    let rest = hundredths % 100
    return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
  }
}
