import SluiceIO
import SluiceWire

/// Readers of the values that options take, for `ParsedArguments.value(_:_:)`.
public enum Values {
  /// A whole number in `range`. `1k` is 1,000, `2M` 2,000,000; `_` may separate digits.
  public static func count(in range: ClosedRange<UInt64> = 0...UInt64.max) -> (String) throws(ValueError) ->
    UInt64
  {
    { text throws(ValueError) in
      var digits = text.filter { $0 != "_" }[...]
      var factor: UInt64 = 1
      switch digits.last {
      case "k", "K": factor = 1_000
      case "M": factor = 1_000_000
      case "G": factor = 1_000_000_000
      default: break
      }
      if factor > 1 { digits.removeLast() }
      guard digits.first?.isNumber == true, let number = UInt64(digits) else {
        throw ValueError("'\(text)' isn't a whole number")
      }
      let (product, overflow) = number.multipliedReportingOverflow(by: factor)
      guard !overflow, range.contains(product) else { throw outOfRange(text, range) }
      return product
    }
  }

  /// Splits a word and its value after a colon: `last:10`. The value is nil without a colon.
  public static func word(_ text: String) -> (word: String, value: String?) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    return (parts[0], parts.count > 1 ? parts[1] : nil)
  }

  /// A position in a topic: `earliest`, `last:10`, `offset:7`, `time:2026-02-03T04:05:06Z` or `time:` and milliseconds since 1970; nil for another text.
  public static func position(_ text: String) -> Subscribe.Start? {
    if text == "earliest" { return .earliest }
    let (word, value) = word(text)
    guard let value else { return nil }
    switch word {
    case "last": return UInt64(value).map { .last($0) }
    case "offset": return UInt64(value).map { .offset($0) }
    case "time": return (Int64(value) ?? (try? WallTime.parse(value))).map { .time($0) }
    default: return nil
    }
  }

  /// A count or `unlimited`, which is `UInt64.max`.
  public static func countOrUnlimited(
    in range: ClosedRange<UInt64> = 0...UInt64.max
  ) -> (String) throws(ValueError) -> UInt64 {
    { text throws(ValueError) in
      if text == "unlimited" { return UInt64.max }
      guard text.first?.isNumber == true else {
        throw ValueError("'\(text)' is neither a whole number nor 'unlimited'")
      }
      return try count(in: range)(text)
    }
  }

  /// One of a few words.
  ///
  /// - Parameter meanings: the words and their values, in the order of messages.
  public static func choice<Value>(_ meanings: KeyValuePairs<String, Value>) -> (String) throws(ValueError) ->
    Value
  {
    choice(meanings.map { ($0.key, $0.value) })
  }

  /// One of the raw values of a type's cases.
  public static func choice<Value: RawRepresentable<String> & CaseIterable>(
    _ type: Value.Type
  ) -> (String) throws(ValueError) -> Value {
    choice(type.allCases.map { ($0.rawValue, $0) })
  }

  /// One of a few words, as above.
  static func choice<Value>(_ meanings: [(String, Value)]) -> (String) throws(ValueError) -> Value {
    { text throws(ValueError) in
      if let found = meanings.first(where: { $0.0 == text }) { return found.1 }
      let words = meanings.map(\.0)
      let all = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
      throw ValueError(
        "there is no '\(text)'\(Spelling.advice(for: text, in: words, otherwise: "it can be \(all)"))")
    }
  }

  /// The same, with a default port.
  public static func address(_ text: String, port: UInt16) throws(ValueError) -> SocketAddress {
    try address(addressed(text, port))
  }

  /// `HOST:PORT`, `[V6]:PORT`, either behind `tls://`, or `unix:PATH`.
  public static func address(_ text: String) throws(ValueError) -> SocketAddress {
    do {
      return try SocketAddress(parsing: text)
    } catch {
      throw ValueError(error.description)
    }
  }

  /// The text, with the port appended if it has only a host.
  private static func addressed(_ text: String, _ port: UInt16) -> String {
    let host = text.hasPrefix("tls://") ? text.dropFirst(6) : text[...]
    let isAlone = host.hasPrefix("[") ? host.hasSuffix("]") : !host.contains(":") && !host.isEmpty
    return isAlone ? "\(text):\(port)" : text
  }

  /// A topic's name or a pattern.
  public static func pattern(_ text: String) throws(ValueError) -> TopicPattern {
    do {
      return try TopicPattern(text)
    } catch {
      throw ValueError(error.message)
    }
  }

  private static func outOfRange(_ text: String, _ range: ClosedRange<UInt64>) -> ValueError {
    if range.upperBound == .max {
      return range.lowerBound == 0
        ? ValueError("\(text) is too large")
        : ValueError("\(text) is too small; it must be at least \(range.lowerBound)")
    }
    return ValueError("\(text) isn't between \(range.lowerBound) and \(range.upperBound)")
  }
}

/// Finds the word that a mistyped word is meant to be.
public enum Spelling {
  /// The candidate nearest to `word`, if one is near enough for a typing error; the first of several equally near ones.
  public static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    nearest(to: word, in: candidates, limit: 1).first
  }

  /// The end of a message about a word that isn't known: "; did you mean 'x'?", or "; there are x, y".
  ///
  /// - Parameters:
  ///   - otherwise: the clause if no word is near; nil to name all words.
  ///   - quoted: formats the near word for the message.
  public static func advice(
    for word: String, in words: [String], otherwise: String? = nil,
    _ quoted: (String) -> String = { "'\($0)'" }
  ) -> String {
    if let near = nearest(to: word, in: words) { return "; did you mean \(quoted(near))?" }
    return "; " + (otherwise ?? "there are \(words.joined(separator: ", "))")
  }

  /// The candidates that are near enough to `word` for a typing error, the nearest first, at most `limit`.
  public static func nearest(
    to word: String, in candidates: some Sequence<String>, limit: Int
  ) -> [String] {
    // A third of the letters may be wrong; a prefix is always near enough.
    let letters = Array(word.utf8)
    var near: [(candidate: String, distance: Int)] = []
    for candidate in candidates {
      let isPrefix = letters.count >= 3 && candidate.utf8.starts(with: letters)
      let distance = isPrefix ? 1 : distance(letters, Array(candidate.utf8))
      let allowed = max(1, min(letters.count, candidate.utf8.count) / 3)
      guard distance <= allowed else { continue }
      // After equally near candidates.
      near.insert((candidate, distance), at: near.firstIndex { $0.distance > distance } ?? near.count)
      if near.count > limit { near.removeLast() }
    }
    return near.map(\.candidate)
  }

  /// The number of letters to add, drop, replace or swap with their neighbor to get from one word to the other.
  static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        let isSame = left[i] == right[j]
        var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (isSame ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          cost = min(cost, beforeLast[j - 1] + 1)
        }
        row.append(cost)
      }
      beforeLast = last
      last = row
    }
    return last[right.count]
  }
}
