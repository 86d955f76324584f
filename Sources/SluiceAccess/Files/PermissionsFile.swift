import SluiceWire

/// The file of permissions: `IDENTITY RIGHTS PATTERN...` a line, and comments, which begin with `#`.
///
///     # All authenticated clients:
///     * subscribe public.>
///     alice publish,create orders.> invoices.*
///     "Alice Smith" all smith.>
///     * publish devices.%u.%c.>
///
/// A whole token `%u` is the identity's name, `%c` the client's identifier: see ``PermissionPlaceholders``.
///
/// A text with spaces, or one that begins with `#`, is in quotation marks, in which a backslash precedes a literal quotation mark or backslash. `*`
/// in quotation marks is an identity of that name.
package struct PermissionsFile: Sendable {
  package private(set) var permissions: NameTable<Permissions> = [:]
  package private(set) var commonPermissions = Permissions.nothing
  /// Every rule, with its line's number and identity, in the file's order.
  package private(set) var rules: [PermissionFileRule] = []

  /// Patterns that one identity may have: each is compared when it opens a stream.
  static let patternLimit = 1_000

  /// - Throws: ``AccessFileError`` that names the line.
  package init(_ bytes: [UInt8], path: String) throws(AccessFileError) {
    // Gathered first, in place: permissions are made of rules once. The first list holds for all identities.
    var places: NameTable<Int> = [:]
    var lists: [[Permissions.Rule]] = [[]]
    for line in try TextLines.meaningful(of: bytes, path) {
      do throws(AccessTextError) {
        let (subject, rules) = try Self.rules(of: line.text)
        let place = subject.map { places[$0] ?? lists.count } ?? 0
        if place == lists.count { lists.append([]) }
        if let subject { places[subject] = place }
        lists[place] += rules
        self.rules += rules.map { PermissionFileRule(line: line.number, subject: subject, rule: $0) }
        guard lists[place].count <= Self.patternLimit else {
          throw AccessTextError(
            "these are more than \(Self.patternLimit) patterns for one identity; take fewer, with wildcards")
        }
      } catch {
        throw AccessFileError(path, line: line.number, error.description)
      }
    }
    for name in places.names { permissions[name] = places[name].map { Permissions(lists[$0]) } }
    commonPermissions = Permissions(lists[0])
  }

  /// Nil for the rules of all clients.
  private static func rules(
    of line: Substring
  ) throws(AccessTextError) -> (subject: String?, rules: [Permissions.Rule]) {
    let words = try PermissionWord.split(line)
    guard words.count >= 3 else {
      throw AccessTextError(
        words.count == 1
          ? "there are no rights behind '\(IdentityRules.shown(words[0].text))'; write IDENTITY RIGHTS PATTERN..."
          : "there is no pattern of topics behind the rights; > stands for all topics")
    }
    let subject = words[0].text
    if let objection = IdentityRules.objection(to: subject) {
      throw AccessTextError("'\(IdentityRules.shown(subject))' can't be an identity: \(objection)")
    }
    let rights = try rights(words[1].text)
    var rules: [Permissions.Rule] = []
    for word in words[2...] {
      guard word.isQuoted || word.text.utf8.first != UInt8(ascii: "#") else {
        throw AccessTextError(
          "a comment has a line of its own; a pattern that begins with # stands in quotation marks")
      }
      do {
        rules.append(.init(rights, on: try TopicPattern(word.text)))
      } catch {
        throw AccessTextError(error.message)
      }
    }
    return (words[0].isQuoted || subject != "*" ? subject : nil, rules)
  }

  private static func rights(_ text: String) throws(AccessTextError) -> Rights {
    var rights = Rights()
    for part in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let word = String(Substring(part))
      if word == "all" {
        rights = .all
      } else if let right = Rights.names.first(where: { $0.value == word })?.key {
        rights.formUnion(right)
      } else {
        throw AccessTextError(
          "there is no right '\(IdentityRules.shown(word))'\(hint(word)); rights are publish, subscribe, create, admin and all, with commas "
            + "between them and no spaces")
      }
    }
    return rights
  }

  /// The probable intention: half of a word is enough, or a synonym.
  private static func hint(_ word: String) -> String {
    let others = [
      "pub": "publish", "write": "publish", "produce": "publish", "sub": "subscribe", "read": "subscribe",
      "consume": "subscribe", "make": "create", "delete": "admin", "manage": "admin", "any": "all",
      "*": "all",
      ">": "all",
    ]
    let lower = word.lowercased()
    let near = Rights.names.map(\.value).first {
      $0 == lower || (lower.count > 2 && $0.hasPrefix(lower.prefix(3)))
    }
    return (near ?? others[lower]).map { ", did you mean '\($0)'?" } ?? ""
  }
}

extension PermissionsFile {
  /// Reads a file. Blocks.
  package static func read(_ path: String) throws(AccessFileError) -> PermissionsFile {
    try PermissionsFile(try AccessFile(path).contents(), path: path)
  }
}
