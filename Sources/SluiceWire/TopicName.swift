/// The rules for topic names: tokens of printable characters, separated by dots.
///
/// 1 to 255 bytes of UTF-8; no token is empty; no white space, control characters, `*`, `>`; names that start with `$` are the broker's own. Names are in
/// Unicode's Normalization Form C. Among spellings that are canonically equivalent, and therefore look alike, only one is a valid name.
public enum TopicName {
  /// In bytes of UTF-8.
  public static let maximumLength = 255

  /// Topics whose names begin so are inboxes, for one client's replies: unless a rule of the broker says otherwise, they keep nothing for late
  /// subscribers, and are deleted when nothing is attached any more.
  public static let inboxPrefix = "_inbox."

  /// Whether the name begins with ``inboxPrefix``. By bytes, as names are cut into tokens: the next one may begin with a character that combines.
  public static func isInbox(_ name: String) -> Bool {
    name.utf8.starts(with: inboxPrefix.utf8)
  }

  /// - Parameters:
  ///   - name: to be checked.
  ///   - kind: the kind of the name: names of durable cursors and groups follow the same rules.
  /// - Throws: ``ErrorCode/invalidTopic`` with what is wrong and where.
  public static func validate(_ name: String, as kind: String = "topic") throws(WireError) {
    if PlainName.isName(name) { return }
    try validate(anySpelling: name, as: kind)
    guard isComposed(name) else {
      throw invalid(
        name, kind,
        "its characters aren't composed as Unicode's Normalization Form C has them; compose them")
    }
  }

  /// As ``validate(_:as:)``, for a name that an earlier version may have stored, which took any of the canonically equivalent spellings for a name.
  package static func validate(anySpelling name: String, as kind: String = "topic") throws(WireError) {
    if PlainName.isName(name) { return }
    guard !name.isEmpty else { throw WireError(.invalidTopic, "a \(kind) name can't be empty") }
    guard name.utf8.count <= maximumLength else {
      throw invalid(name, kind, "it has \(name.utf8.count) bytes; the limit is \(maximumLength)")
    }
    guard name.utf8.first != UInt8(ascii: "$") else {
      throw invalid(name, kind, "names that start with $ are reserved")
    }
    var tokenIsEmpty = true
    for (index, scalar) in name.unicodeScalars.enumerated() {
      switch scalar {
      case ".":
        if tokenIsEmpty {
          throw invalid(name, kind, "the token before the dot at character \(index + 1) is empty")
        }
        tokenIsEmpty = true
      case "*", ">":
        let place = scalar == "*" ? "between dots" : "at their end"
        throw invalid(
          name, kind, "\(scalar) at character \(index + 1) is for patterns, as a token of its own \(place)")
      default:
        guard isVisible(scalar) else {
          throw invalid(name, kind, "white space or a control character at character \(index + 1)")
        }
        tokenIsEmpty = false
      }
    }
    if tokenIsEmpty { throw invalid(name, kind, "the last token is empty") }
  }

  private static func invalid(_ name: String, _ kind: String, _ why: String) -> WireError {
    // The name may be anything, and the message goes to terminals and logs.
    WireError(.invalidTopic, "\"\(ShownText.line(name, limit: 64))\" isn't a \(kind) name: \(why)")
  }

  /// Whether the text is in Normalization Form C.
  package static func isComposed(_ name: String) -> Bool {
    if name.utf8.allSatisfy({ $0 < 0x80 }) { return true }
    var span = name.utf8Span
    return span.checkForNFC(quickCheck: true) || span.checkForNFC(quickCheck: false)
  }

  /// The parts between the dots.
  static func tokens(_ name: String) -> [Substring] {
    // By bytes: a character that combines with the one before is the start of a token, behind a dot as anywhere.
    name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Substring($0) }
  }

  /// Whether a name is private: one of the broker's own, or an inbox for answers to requests.
  static func isPrivate(_ name: String) -> Bool {
    name.utf8.first == UInt8(ascii: "$") || name == "_inbox" || isInbox(name)
  }

  /// Whether a character is neither white space nor a control character, by Unicode's properties. A list of these few, since looking up a property takes longer
  /// than the rest of the check.
  package static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0...0x20, 0x7F...0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: false
    default: true
    }
  }
}
