import Glibc
import SluiceAccess
import SluiceCommand
import SluiceWire

struct TokenShowCommand: Command {
  enum Source: Equatable {
    case text(String)
    case file(String)
    case standardInput
  }

  let source: Source
  let key: String?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice token show", summary: "show a token's contents, and verify it",
    operands: [Operand("TOKEN", .optional)],
    options: [
      CommandOption("file", value: "FILE", help: "Read the token from FILE."),
      CommandOption(
        "key", value: "FILE", help: "Verify the signature with this key: public, private or secret."),
      CommandOption("json", help: "Print an object."),
    ],
    details: """
      Without TOKEN and --file, or with -, reads the token from standard input. Other users of the machine may see TOKEN on the command line, and can use it until it \
      expires. With --key, ends with 1 if a broker with that key would refuse the token.
      """,
    examples: [
      "Show a token.": "sluice token show --file shop.token",
      "Verify that a broker with that key accepts it.": "sluice token show --file shop.token --key 2026.pem",
      "When does it expire?": "sluice token show --file shop.token --json | jq -r .expires",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    key = arguments.text("key")
    asJSON = arguments.has("json")
    let operand = arguments.operands.first
    if let path = arguments.text("file") {
      guard operand == nil else { throw UsageError("--file and TOKEN exclude each other; give one of them") }
      source = .file(path)
    } else if let operand, operand != "-" {
      source = .text(operand)
    } else {
      source = .standardInput
    }
  }

  func start(_ run: Run) {
    AccessJob.start(run) { try inspect() }
  }

  private func inspect() throws -> String {
    let inspection = try TokenInspection(try text())
    let now = WallTime.now
    guard let key else { return show(inspection, verdict: nil, now) }
    let objection = inspection.objection(of: try KeyFile.verifier(key), now: now)
    let shown = show(inspection, verdict: Verdict(objection), now)
    guard let objection else { return shown }
    // Prints the contents in any case.
    if let complaint = ProgramOutput.write(shown)?.ending.complaint { throw AccessJob.Failure(complaint) }
    throw AccessJob.Failure("a broker with this key would refuse the token: \(objection)")
  }

  private func show(_ inspection: TokenInspection, verdict: Verdict?, _ now: Int64) -> String {
    asJSON ? TokenText.json(inspection, verdict, now: now) : TokenText.table(inspection, verdict, now: now)
  }

  private func text() throws(AccessJob.Failure) -> String {
    switch source {
    case .text(let text): return text
    case .standardInput: return try Self.contents(of: nil)
    case .file(let path): return try Self.contents(of: path)
    }
  }

  private static func contents(of path: String?) throws(AccessJob.Failure) -> String {
    // Enough to detect a token that is too long.
    let bytes = try AccessJob.read(path, limit: 1 << 16)
    let blank = Set(" \t\r\n".utf8)
    let token = bytes.drop { blank.contains($0) }.reversed().drop { blank.contains($0) }.reversed()
    return String(decoding: Array(token), as: UTF8.self)
  }

  /// The result of verifying the signature.
  enum Verdict {
    case right
    case wrong

    /// A token with a valid signature may be refused for another reason.
    init(_ objection: TokenError?) {
      switch objection {
      case nil, .expired, .notYet, .otherAudience: self = .right
      case .malformed, .noSuchKey, .otherAlgorithm, .badSignature: self = .wrong
      }
    }
  }
}

/// A token's contents, as text and as JSON.
enum TokenText {
  static func table(
    _ token: TokenInspection, _ verdict: TokenShowCommand.Verdict?, now: Int64
  ) -> String {
    var rows = [["subject", token.subject], ["key", "\(token.keyID) (\(token.algorithm))"]]
    let left = Duration.milliseconds(abs(token.expires - now))
    let isOver = token.expires <= now
    rows.append([
      "expires",
      "\(WallTime.format(token.expires)), \(isOver ? "\(span(left)) ago" : "in \(span(left))")",
    ])
    if let begins = token.notBefore { rows.append(["not before", WallTime.format(begins)]) }
    if let issued = token.issued { rows.append(["issued", WallTime.format(issued)]) }
    if let audience = token.audience { rows.append(["audience", audience.joined(separator: ", ")]) }
    if let permissions = token.permissions {
      for (right, name) in Rights.names {
        let patterns = permissions.rules.filter { $0.rights.contains(right) }.map(\.pattern.description)
        if !patterns.isEmpty { rows.append([name, patterns.joined(separator: " ")]) }
      }
      if permissions.rules.isEmpty { rows.append(["permissions", "none"]) }
    } else {
      rows.append(["permissions", "those of the broker's file"])
    }
    rows.append(["signature", word(verdict)])
    rows += [["header", token.headerJSON], ["claims", token.claimsJSON]]
    return TextTable.render(rows, leftColumns: 2)
  }

  static func json(
    _ token: TokenInspection, _ verdict: TokenShowCommand.Verdict?, now: Int64
  ) -> String {
    let json: JSON = [
      "subject": .text(token.subject), "key": .text(token.keyID), "algorithm": .text(token.algorithm),
      "expires": .text(WallTime.format(token.expires)), "expired": .flag(token.expires <= now),
      "verified": verdict.map { .flag($0 == .right) } ?? .null, "header": .notation(token.headerJSON),
      "claims": .notation(token.claimsJSON),
    ]
    return json.line
  }

  private static func word(_ verdict: TokenShowCommand.Verdict?) -> String {
    switch verdict {
    case nil: "not verified; name a key with --key"
    case .right: "right"
    case .wrong: "WRONG"
    }
  }

  /// In whole seconds, clamped to a time that can be written.
  private static func span(_ duration: Duration) -> String {
    TimeSpan.exact(.seconds(min(duration.components.seconds, 9_000_000_000)))
  }
}
