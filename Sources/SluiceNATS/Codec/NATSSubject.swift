/// What may be a subject: tokens between dots, none empty, without blanks and control characters.
///
/// In subjects that are subscribed to, `*` stands for one token and a last `>` for all that follow.
public enum NATSSubject {
  /// The server's limit of a line, less what else is in it.
  static let longest = 3_072

  /// Checks a subject to publish to, or to subscribe to with `wildcards`.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidSubject``, which says what is wrong.
  public static func check(_ subject: String, wildcards: Bool = false) throws(NATSError) {
    func fail(_ problem: String) -> NATSError {
      var error = NATSError(
        .invalidSubject, "'\(NATSError.printable(subject))' can't be a subject: \(problem)")
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

  /// Whether a subject matches a pattern, token by token.
  public static func matches(_ subject: String, _ pattern: String) -> Bool {
    var left = subject.split(separator: ".", omittingEmptySubsequences: false)[...]
    var right = pattern.split(separator: ".", omittingEmptySubsequences: false)[...]
    while let expected = right.popFirst() {
      if expected == ">" { return !left.isEmpty }
      guard let token = left.popFirst(), expected == "*" || expected == token else { return false }
    }
    return left.isEmpty
  }
}
