/// Numbers cut to three digits, for reading.
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
