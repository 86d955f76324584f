/// The file of users: `NAME:HASH` a line, see ``PasswordHash``, and comments, which begin with `#`.
///
/// Changes keep comments and the order of lines.
public struct UsersFile: Sendable {
  private enum Line: Sendable {
    case other(String)
    case user(String, PasswordHash)
  }

  private var lines: [Line] = []
  /// Where in `lines` each user is.
  private var places: NameTable<Int> = [:]

  public init() {}

  /// - Parameters:
  ///   - bytes: a whole file.
  ///   - path: for messages.
  /// - Throws: ``AccessFileError`` that names the line.
  public init(_ bytes: [UInt8], path: String) throws(AccessFileError) {
    for (index, text) in try TextLines.all(of: bytes, path).enumerated() {
      do throws(AccessTextError) {
        try add(text)
      } catch {
        throw AccessFileError(path, line: index + 1, error.description)
      }
    }
  }

  private mutating func add(_ text: Substring) throws(AccessTextError) {
    let trimmed = TextLines.trim(text)
    guard !trimmed.isEmpty, trimmed.utf8.first != UInt8(ascii: "#") else {
      lines.append(.other(String(text)))
      return
    }
    let parts = trimmed.utf8.split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false
    ).map { Substring($0) }
    guard parts.count == 2 else {
      throw AccessTextError(
        "this isn't NAME:HASH; have sluice user add write such lines, and begin comments with #")
    }
    let name = String(parts[0])
    if let objection = IdentityRules.objection(toUser: name) {
      throw AccessTextError("'\(IdentityRules.shown(name))' can't be a user's name: \(objection)")
    }
    if let place = places[name] {
      throw AccessTextError(
        "there is a user '\(IdentityRules.shown(name))' already, in line \(place + 1); remove one of them")
    }
    lines.append(.user(name, try PasswordHash(parts[1])))
    places[name] = lines.count - 1
  }

  // MARK: Users

  /// In the file's order.
  public var users: [(name: String, hash: PasswordHash)] {
    lines.compactMap { if case .user(let name, let hash) = $0 { (name, hash) } else { nil } }
  }

  public func hasUser(_ name: String) -> Bool { places[name] != nil }

  /// Sets a user's password; a new user gets a new last line.
  public mutating func set(_ hash: PasswordHash, of name: String) {
    let place = places[name] ?? lines.count
    if place == lines.count { lines.append(.user(name, hash)) } else { lines[place] = .user(name, hash) }
    places[name] = place
  }

  /// Returns whether there was such a user.
  public mutating func remove(_ name: String) -> Bool {
    guard let place = places[name] else { return false }
    lines.remove(at: place)
    places = [:]
    for (place, line) in lines.enumerated() {
      if case .user(let name, _) = line { places[name] = place }
    }
    return true
  }

  /// The file's bytes.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for line in lines {
      switch line {
      case .other(let text): bytes += text.utf8
      case .user(let name, let hash): bytes += "\(name):\(hash.text)".utf8
      }
      bytes.append(UInt8(ascii: "\n"))
    }
    return bytes
  }
}
