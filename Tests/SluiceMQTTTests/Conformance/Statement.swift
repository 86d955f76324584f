import Foundation

/// A normative statement of a standard, with the tests that cover it or the reason why there is none.
struct Statement: CustomStringConvertible {
  /// As in the standard, without `MQTT-`.
  var number: String
  /// Its requirement in short.
  var demand: String
  /// As `Suite.test`.
  var tests: [String]
  /// Why there is no test, or which part is covered elsewhere; nil if neither applies.
  var note: String?

  var description: String { "[MQTT-\(number)]" }

  /// Reads a table with a line for each statement: `number | demand | tests, separated by commas | note`. The last two may be empty or missing.
  static func table(_ text: String) -> [Statement] {
    text.split(separator: "\n").map { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      let tests = cells.count > 2 ? cells[2].split(separator: ",") : []
      return Statement(
        number: cells[0], demand: cells.count > 1 ? cells[1] : "",
        tests: tests.map { $0.trimmingCharacters(in: .whitespaces) },
        note: cells.count > 3 && !cells[3].isEmpty ? cells[3] : nil)
    }
  }

  /// Reads a list of numbers by section: `1.5.4:1-3 1.5.5:1`.
  static func numbers(_ text: String) -> [String] {
    text.split(whereSeparator: \.isWhitespace).flatMap { section -> [String] in
      let parts = section.split(separator: ":")
      return parts[1].split(separator: ",").flatMap { range -> [String] in
        let bounds = range.split(separator: "-").compactMap { Int($0) }
        return (bounds[0]...(bounds.last ?? bounds[0])).map { "\(parts[0])-\($0)" }
      }
    }
  }
}
