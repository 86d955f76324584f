/// The name of a node of a cluster: from 1 to 64 letters, digits, `-` and `_`.
public enum NodeName {
  public static let longest = 64

  public static func isValid(_ text: String) -> Bool {
    (1...longest).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || $0 == 0x2D
          || $0 == 0x5F
      }
  }

  /// - Throws: ``ErrorCode/invalidTopic`` with what is wrong.
  static func validate(_ text: String) throws(WireError) {
    guard isValid(text) else {
      throw WireError(
        .invalidTopic,
        "'\(text)' can't be the name of a node: it has from 1 to \(longest) letters, digits, '-' and '_'")
    }
  }
}
