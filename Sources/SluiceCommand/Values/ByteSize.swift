/// Amounts of bytes as people write them: `64MiB`, `1500`, `2GB`.
public enum ByteSize {
  private static let units: [(suffixes: [String], factor: UInt64)] = [
    (["", "b"], 1),
    (["kib", "k"], 1 << 10), (["mib", "m"], 1 << 20), (["gib", "g"], 1 << 30), (["tib", "t"], 1 << 40),
    (["kb"], 1_000), (["mb"], 1_000_000), (["gb"], 1_000_000_000), (["tb"], 1_000_000_000_000),
  ]

  /// Reads a whole number and a unit: `B`; `KiB`, `MiB`, `GiB`, `TiB`, or just the letter, in steps of 1024; `kB`, `MB`,
  /// `GB`, `TB` in steps of 1000. Capitals don't matter.
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

  /// The amount to three digits or so, for reading: "1.21 GiB", "900 B".
  public static func rounded(_ bytes: UInt64) -> String {
    Magnitude.rounded(Double(bytes), step: 1024, units: [" B", " KiB", " MiB", " GiB", " TiB", " PiB"])
  }
}
