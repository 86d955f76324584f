/// The notation of amounts of bytes: `64MiB`, `1500`, `2GB`.
public enum ByteSize {
  private static let units: [(suffixes: [String], factor: UInt64)] = [
    (["", "b"], 1),
    (["kib", "k"], 1 << 10), (["mib", "m"], 1 << 20), (["gib", "g"], 1 << 30), (["tib", "t"], 1 << 40),
    (["kb"], 1_000), (["mb"], 1_000_000), (["gb"], 1_000_000_000), (["tb"], 1_000_000_000_000),
  ]

  /// Reads a whole number and a unit: `B`; `KiB`, `MiB`, `GiB`, `TiB`, or just the letter, in steps of 1024; `kB`, `MB`,
  /// `GB`, `TB` in steps of 1000. Case is ignored.
  public static func parse(_ text: String) throws(ValueError) -> UInt64 {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let suffix = text.dropFirst(digits.count).drop { $0 == " " }.lowercased()
    guard let number = UInt64(digits), let unit = units.first(where: { $0.suffixes.contains(suffix) }) else {
      throw ValueError("'\(text)' isn't a size; write a whole number and a unit, like 64MiB")
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: unit.factor)
    guard !overflow else { throw ValueError("'\(text)' is too large") }
    return product
  }

  /// The exact amount in the largest unit that divides it: "64MiB", "1500B".
  public static func exact(_ bytes: UInt64) -> String {
    let steps: [(String, UInt64)] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    for (name, factor) in steps where bytes >= factor && bytes % factor == 0 {
      return "\(bytes / factor)\(name)"
    }
    return "\(bytes)B"
  }

  /// The amount rounded to about three digits: "1.21 GiB", "900 B".
  public static func rounded(_ bytes: UInt64) -> String {
    Magnitude.rounded(Double(bytes), step: 1024, units: [" B", " KiB", " MiB", " GiB", " TiB", " PiB"])
  }
}

/// The notation of durations: `250ms`, `30s`, `24h`, `1h30m`.
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

  /// Reads a range of durations, `1s..5m`.
  public static func range(_ text: String) throws(ValueError) -> ClosedRange<Duration> {
    guard let dots = text.firstRange(of: "..") else {
      throw ValueError(
        "'\(text)' isn't a range of durations; write the shortest and the longest, like 1s..5m")
    }
    let (first, last) = (
      try parse(String(text[..<dots.lowerBound])), try parse(String(text[dots.upperBound...]))
    )
    guard first <= last else { throw ValueError("'\(text)' ends before it begins; write the shortest first") }
    return first...last
  }

  /// As ``parse(_:)``, in whole milliseconds.
  public static func milliseconds(_ text: String) throws(ValueError) -> Int64 {
    try parse(text).wholeMilliseconds
  }

  /// The exact duration, as ``parse(_:)`` reads it: "1h30m", "250ms", "0s". Parts of a nanosecond are dropped.
  public static func exact(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    var result = ""
    // Separately, because a duration may have more nanoseconds than an Int64 can hold.
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

  /// The duration rounded to three digits: "1.25 ms", "48.2 s"; from two minutes on "36 min 42 s", "5 h 7 min", "3 days".
  public static func rounded(_ duration: Duration) -> String {
    let value = duration.inSeconds
    let seconds = duration.components.seconds
    switch seconds {
    case ..<120: break
    case ..<3600: return "\(seconds / 60) min \(seconds % 60) s"
    case ..<172_800: return "\(seconds / 3600) h \(seconds / 60 % 60) min"
    default: return "\(seconds / 86_400) days"
    }
    if value >= 0.9995 { return Magnitude.rounded(value, step: 1e9, units: [" s"]) }
    return Magnitude.rounded(value * 1e9, step: 1000, units: [" ns", " µs", " ms", " s"])
  }
}

/// Numbers rounded for people.
public enum Magnitude {
  /// "950", "12.3 k", "4.56 M": a count or a rate.
  public static func rounded(_ value: Double) -> String {
    rounded(value, step: 1000, units: ["", " k", " M", " G", " T"])
  }

  static func rounded(_ value: Double, step: Double, units: [String]) -> String {
    guard value.isFinite, value >= 0 else { return "–" }
    var value = value
    var index = 0
    // 999.5 would be written as 1000.
    while value >= step - 0.5, index + 1 < units.count {
      value /= step
      index += 1
    }
    let isWhole = index == 0 && value.rounded() == value
    let decimals = isWhole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
    return fixed(value, decimals: decimals) + units[index]
  }

  /// The number with that many decimals.
  public static func fixed(_ value: Double, decimals: Int) -> String {
    precondition((0...6).contains(decimals))
    guard value.isFinite, abs(value) < 1e12 else { return "–" }
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    let scaled = UInt64((abs(value) * scale).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard decimals > 0 else { return sign + String(scaled) }
    let fraction = String(scaled % UInt64(scale))
    let padding = String(repeating: "0", count: decimals - fraction.count)
    return "\(sign)\(scaled / UInt64(scale)).\(padding)\(fraction)"
  }

  /// The number with a comma after every three digits: "104,334".
  public static func grouped(_ value: UInt64) -> String {
    let digits = String(value)
    var result = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { result.append(",") }
      result.append(digit)
    }
    return result
  }
}

extension Duration {
  /// Parts of a millisecond are dropped.
  public var wholeMilliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }

  public var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
