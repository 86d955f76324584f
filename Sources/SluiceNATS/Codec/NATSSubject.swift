/// A valid subject: tokens separated by dots, none empty, without blanks and control characters.
///
/// In subscriptions, `*` matches one token and a last `>` one or more.
public enum NATSSubject {
  /// The server's limit of a line, minus the rest of the line.
  static let longest = 3_072

  /// Checks a subject for publishing, or for subscribing with `wildcards`.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidSubject`` with the problem.
  public static func check(_ subject: String, wildcards: Bool = false) throws(NATSError) {
    func fail(_ problem: String) -> NATSError {
      var error = NATSError(
        .invalidSubject, "'\(NATSError.bounded(subject))' can't be a subject: \(problem)")
      error.subject = subject
      return error
    }
    guard !subject.isEmpty else { throw fail("it is empty") }
    guard subject.utf8.count <= longest else { throw fail("it is longer than \(longest) bytes") }
    var length = 0
    var isWild: UInt8 = 0
    var hasEnded = false
    for byte in subject.utf8 {
      guard byte > 0x20, byte != 0x7F else { throw fail("it has a blank or a control character") }
      if byte == UInt8(ascii: ".") {
        guard length > 0 else { throw fail("a token is empty") }
        if isWild != 0, length == 1 {
          guard wildcards else { throw fail("it has a wildcard, which only subscriptions can") }
          hasEnded = isWild == UInt8(ascii: ">")
        }
        if hasEnded { throw fail("'>' isn't its last token") }
        length = 0
        isWild = 0
        continue
      }
      if byte == UInt8(ascii: "*") || byte == UInt8(ascii: ">") { isWild = byte }
      length += 1
    }
    guard length > 0 else { throw fail("a token is empty") }
    if isWild != 0, length == 1, !wildcards { throw fail("it has a wildcard, which only subscriptions can") }
  }

  /// Returns whether a subject matches a pattern, token by token.
  public static func matches(_ subject: String, _ pattern: String) -> Bool {
    let dot = UInt8(ascii: ".")
    var left = subject.utf8.makeIterator()
    var right = pattern.utf8.makeIterator()
    // Both iterators are at the beginning of a token.
    var isBeginning = true
    while let expected = right.next() {
      guard isBeginning, expected == UInt8(ascii: "*") || expected == UInt8(ascii: ">") else {
        guard let byte = left.next(), byte == expected else { return false }
        isBeginning = expected == dot
        continue
      }
      let following = right.next()
      if let following, following != dot {
        // A token that only begins like a wildcard.
        guard let byte = left.next(), byte == expected, let next = left.next(), next == following else {
          return false
        }
        isBeginning = false
        continue
      }
      if expected == UInt8(ascii: ">") { return true }
      var end = left.next()
      while let byte = end, byte != dot { end = left.next() }
      if following == nil || end == nil { return following == nil && end == nil }
    }
    return left.next() == nil
  }
}
