/// What can be a name of an identity.
public enum IdentityRules {
  /// In bytes of UTF-8.
  public static let maximumLength = 255

  /// What is wrong with a name, as the end of a sentence; nil for one that can be used.
  public static func objection(to name: String) -> String? {
    if name.isEmpty { return "it is empty" }
    if name.utf8.count > maximumLength {
      return "it has \(name.utf8.count) bytes; the limit is \(maximumLength)"
    }
    if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
      return "it has a control character"
    }
    return nil
  }

  /// The same for the name of a user, which stands at the beginning of a line, before a colon.
  public static func objection(toUser name: String) -> String? {
    if let objection = objection(to: name) { return objection }
    if name.utf8.contains(UInt8(ascii: ":")) { return "it has a colon, which ends a name" }
    if name.utf8.first == UInt8(ascii: "#") { return "it begins with #, as comments do" }
    if name == "*" { return "* stands for all clients" }
    if let first = name.unicodeScalars.first, let last = name.unicodeScalars.last,
      first.properties.isWhitespace || last.properties.isWhitespace
    {
      return "it begins or ends with white space"
    }
    return nil
  }

  /// A name as a message shows it: control characters as question marks, and no longer than a line takes.
  static func shown(_ name: some StringProtocol) -> String {
    var text = String.UnicodeScalarView()
    for scalar in name.unicodeScalars.prefix(64) {
      text.append(scalar.properties.generalCategory == .control ? "?" : scalar)
    }
    if name.unicodeScalars.count > 64 { text.append("…") }
    return String(text)
  }
}
