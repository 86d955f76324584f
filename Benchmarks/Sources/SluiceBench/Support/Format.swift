import Foundation

/// Figures as a person reads them: three significant digits and a unit.
enum Format {
  /// A rate or a count: `28.4 M`, `299 k`, `812`.
  static func count(_ value: Double) -> String {
    switch value {
    case 1e9...: digits(value / 1e9) + " G"
    case 1e6...: digits(value / 1e6) + " M"
    case 1e3...: digits(value / 1e3) + " k"
    default: digits(value)
    }
  }

  /// Bytes in binary units: `1.5 MiB`.
  static func bytes(_ value: Double) -> String {
    switch abs(value) {
    case 1_073_741_824...: digits(value / 1_073_741_824) + " GiB"
    case 1_048_576...: digits(value / 1_048_576) + " MiB"
    case 1024...: digits(value / 1024) + " KiB"
    default: digits(value) + " B"
    }
  }

  /// Three significant digits without an exponent.
  static func digits(_ value: Double) -> String {
    let size = abs(value)
    let places = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : size == 0 ? 0 : 4
    return String(format: "%.\(places)f", value)
  }
}
