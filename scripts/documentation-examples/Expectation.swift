/// The expected output of a program. `…` in a line is any text, and a line `…` any number of lines; times and rates may differ.
struct Expectation {
  let lines: [String]

  init(_ lines: [String]) {
    self.lines = lines.map(Self.withoutMeasures)
  }

  func isMet(by output: String) -> Bool {
    Self.matches(lines[...], output.textLines.map(Self.withoutMeasures)[...])
  }

  private static func matches(_ expected: ArraySlice<String>, _ printed: ArraySlice<String>) -> Bool {
    guard let line = expected.first else { return printed.isEmpty }
    let rest = expected.dropFirst()
    if line == "…" {
      return (printed.startIndex...printed.endIndex).contains { matches(rest, printed[$0...]) }
    }
    guard let first = printed.first, covers(line, first) else { return false }
    return matches(rest, printed.dropFirst())
  }

  /// Whether a pattern with `…` for any text matches all of the text.
  static func covers(_ pattern: String, _ text: String, wildcard: Character = "…") -> Bool {
    let parts = pattern.split(separator: wildcard, omittingEmptySubsequences: false)
    guard parts.count > 1 else { return pattern == text }
    guard text.hasPrefix(parts[0]) else { return false }
    var rest = text.dropFirst(parts[0].count)
    for part in parts[1..<(parts.count - 1)] where !part.isEmpty {
      guard let range = rest.firstRange(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.hasSuffix(parts[parts.count - 1])
  }

  /// The line with placeholders for durations, rates and points in time.
  private static func withoutMeasures(_ line: String) -> String {
    line
      .replacing(#/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/#, with: "<time>")
      .replacing(#/\b\d+(\.\d+)? (ns|µs|ms|s)\b/#, with: "<duration>")
      .replacing(#/\b\d+(\.\d+)?( [kMG])?/s\b/#, with: "<rate>")
  }
}
