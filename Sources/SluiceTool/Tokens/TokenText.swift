import SluiceAccess
import SluiceCommand
import SluiceWire

/// What a token says, as text and as JSON.
enum TokenText {
  static func table(
    _ token: TokenInspection, _ verdict: TokenShowCommand.Verdict?, now: Int64
  ) -> String {
    var rows = [["subject", token.subject], ["key", "\(shown(token.keyID)) (\(shown(token.algorithm)))"]]
    let left = Duration.milliseconds(abs(token.expires - now))
    let isOver = token.expires <= now
    rows.append([
      "expires",
      "\(WallTime.format(token.expires)), \(isOver ? "\(span(left)) ago" : "in \(span(left))")",
    ])
    if let begins = token.notBefore { rows.append(["not before", WallTime.format(begins)]) }
    if let issued = token.issued { rows.append(["issued", WallTime.format(issued)]) }
    if let audience = token.audience { rows.append(["audience", shown(audience.joined(separator: ", "))]) }
    if let permissions = token.permissions {
      for (right, name) in Rights.names {
        let patterns = permissions.rules.filter { $0.rights.contains(right) }.map(\.pattern.description)
        if !patterns.isEmpty { rows.append([name, patterns.joined(separator: " ")]) }
      }
      if permissions.rules.isEmpty { rows.append(["permissions", "none"]) }
    } else {
      rows.append(["permissions", "as the broker's file says"])
    }
    rows.append(["signature", word(verdict)])
    rows += [["header", token.headerJSON], ["claims", token.claimsJSON]]
    return TextTable.render(rows, leftColumns: 2)
  }

  static func json(
    _ token: TokenInspection, _ verdict: TokenShowCommand.Verdict?, now: Int64
  ) -> String {
    var object = JSONObject()
    object.add("subject", token.subject)
    object.add("key", token.keyID)
    object.add("algorithm", token.algorithm)
    object.add("expires", WallTime.format(token.expires))
    object.add("expired", token.expires <= now)
    if let verdict { object.add("verified", verdict == .right) } else { object.add("verified", json: "null") }
    object.add("header", json: token.headerJSON)
    object.add("claims", json: token.claimsJSON)
    return object.text + "\n"
  }

  private static func word(_ verdict: TokenShowCommand.Verdict?) -> String {
    switch verdict {
    case nil: "not verified; name a key with --key"
    case .right: "right"
    case .wrong: "WRONG"
    }
  }

  /// To the second, and no longer than can be written.
  private static func span(_ duration: Duration) -> String {
    TimeSpan.exact(.seconds(min(duration.components.seconds, 9_000_000_000)))
  }

  /// A token may say anything: it stays a line, and can't steer the terminal.
  private static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
  }
}
