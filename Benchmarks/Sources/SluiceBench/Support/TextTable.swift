import Foundation
import Glibc

/// Lines that end in CR LF, found in place.
enum TextLine {
  /// The length of the line at `position` with its CR LF; nil when its end has not arrived.
  @inline(__always)
  static func length(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Int? {
    let start = bytes.baseAddress! + position
    guard let end = memchr(start, 10, bytes.count - position) else { return nil }
    return UnsafeRawPointer(end) - start + 1
  }

  /// The line as text, for messages; all available bytes if its end hasn't arrived.
  static func text(_ bytes: UnsafeRawBufferPointer, at position: Int) -> String {
    let end = length(bytes, at: position).map { position + $0 } ?? bytes.count
    return String(decoding: bytes[position..<end].filter { $0 >= 32 }, as: UTF8.self)
  }
}

/// Columns of text: the first aligned left, the others right.
struct TextTable {
  private var rows: [[String]] = []

  init(header: [String]) {
    rows.append(header)
  }

  mutating func add(_ row: [String]) {
    rows.append(row)
  }

  /// The table as text, with two spaces between columns, and a rule below the header.
  func rendered() -> String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    var lines = rows.map { row in
      row.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + padding : padding + cell
      }.joined(separator: "  ")
    }
    lines.insert(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  "), at: 1)
    return lines.joined(separator: "\n")
  }
}

/// Readable figures: three significant digits and a unit.
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
