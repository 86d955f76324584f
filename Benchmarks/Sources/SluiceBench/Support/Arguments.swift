/// The options of one subcommand: `--name value` pairs and bare `--flag`s, each read once by name.
///
/// An option that no command has read is an error at `finish()`, so that a misspelt option never runs the wrong measurement.
struct Arguments {
  private var words: [String]

  init(_ words: [String]) {
    self.words = words
  }

  /// Whether the flag was given.
  mutating func flag(_ name: String) -> Bool {
    guard let index = words.firstIndex(of: "--" + name) else { return false }
    words.remove(at: index)
    return true
  }

  /// The option's text, nil when it was not given.
  mutating func text(_ name: String) throws -> String? {
    guard let index = words.firstIndex(of: "--" + name) else { return nil }
    guard index + 1 < words.count else { throw UsageError("--\(name) needs a value") }
    let value = words[index + 1]
    words.removeSubrange(index...(index + 1))
    return value
  }

  /// The option as a number within `range`, nil when it was not given.
  mutating func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = try text(name) else { return nil }
    guard let value = Int(text), range.contains(value) else {
      throw UsageError("--\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// The option as seconds, nil when it was not given.
  mutating func seconds(_ name: String) throws -> Double? {
    guard let text = try text(name) else { return nil }
    guard let value = Double(text), value >= 0, value <= 3600 else {
      throw UsageError("--\(name) must be seconds from 0 to 3600")
    }
    return value
  }

  /// The remaining arguments that aren't options, such as file names.
  mutating func rest() throws -> [String] {
    if let unknown = words.first(where: { $0.hasPrefix("--") }) {
      throw UsageError("unknown option \(unknown)")
    }
    defer { words = [] }
    return words
  }

  /// Throws if any argument wasn't used.
  mutating func finish() throws {
    if let unexpected = try rest().first { throw UsageError("unexpected \(unexpected)") }
  }
}

/// The reason why a run couldn't be made or has failed, in one line.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// An error in the command line: exit code 2 instead of 1.
struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
