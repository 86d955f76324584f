/// Durations as people write them: `250ms`, `30s`, `24h`, `1h30m`.
public enum TimeSpan {
  private static let units: [(name: String, nanoseconds: Int64)] = [
    ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000),
    ("ms", 1_000_000), ("us", 1_000), ("µs", 1_000), ("ns", 1),
  ]

  /// Reads whole numbers, each with a unit: `d`, `h`, `m`, `s`, `ms`, `us`, `ns`. A zero needs none.
  public static func parse(_ text: String) throws(ValueError) -> Duration {
    let problem = ValueError("'\(text)' isn't a duration; write a number and a unit, like 30s, 5m or 1h30m")
    if text == "0" { return .zero }
    var rest = text[...]
    var total: Int64 = 0
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(digits.count)
      let name = rest.prefix { !$0.isNumber }
      rest = rest.dropFirst(name.count)
      guard let number = Int64(digits), let unit = units.first(where: { $0.name == name }) else {
        throw problem
      }
      let (part, overflow) = number.multipliedReportingOverflow(by: unit.nanoseconds)
      let (sum, overflow2) = total.addingReportingOverflow(part)
      guard !overflow, !overflow2 else { throw ValueError("'\(text)' is too long a time") }
      total = sum
    }
    guard !text.isEmpty else { throw problem }
    return .nanoseconds(total)
  }

  /// The exact duration, as ``parse(_:)`` reads it: "1h30m", "250ms", "0s". Parts of a nanosecond are dropped.
  public static func exact(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    var result = ""
    // Apart: a duration may have more nanoseconds than a number can hold.
    func add(_ amount: Int64, each second: Int64, _ units: some Sequence<(name: String, nanoseconds: Int64)>)
    {
      var left = max(0, amount)
      for unit in units where left >= unit.nanoseconds / second {
        result += "\(left / (unit.nanoseconds / second))\(unit.name)"
        left %= unit.nanoseconds / second
      }
    }
    add(seconds, each: 1_000_000_000, units.prefix { $0.nanoseconds >= 1_000_000_000 })
    add(attoseconds / 1_000_000_000, each: 1, units.drop { $0.nanoseconds >= 1_000_000_000 })
    return result.isEmpty ? "0s" : result
  }

  /// The duration to three digits, for reading: "1.25 ms", "48.2 s".
  public static func rounded(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    let value = Double(seconds) + Double(attoseconds) / 1e18
    if value >= 0.9995 { return Magnitude.rounded(value, step: 1e9, units: [" s"]) }
    return Magnitude.rounded(value * 1e9, step: 1000, units: [" ns", " µs", " ms", " s"])
  }
}
