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
