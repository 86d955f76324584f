import SluiceAccess
import SluiceIO
import SluiceTLS
import SluiceWire

/// Reads the Authorization header of a request, and checks permissions.
enum Authorization {
  /// Returns user and password of `Basic`, or the token of `Bearer`. With `Basic` and an empty user name, the password is a token, since browsers can only
  /// send user and password.
  ///
  /// - Parameter header: nil without a header.
  /// - Throws: 401 for no header, and for a malformed one.
  static func credentials(_ header: String?) throws(AdminProblem) -> Credentials {
    guard let header else {
      throw required("this broker requires authentication: send user and password, or a token")
    }
    let parts = header.split(separator: " ", maxSplits: 1)
    let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
    switch parts.first?.lowercased() {
    case "bearer" where !value.isEmpty: return .token(String(value))
    case "basic":
      var text = value.utf8[...]
      while text.last == UInt8(ascii: "=") { text.removeLast() }
      guard let bytes = Base64Text.standard.decode(text), let pair = String(validating: bytes, as: UTF8.self),
        let colon = pair.utf8.firstIndex(of: UInt8(ascii: ":"))
      else { break }
      let secret = String(pair[pair.index(after: colon)...])
      return colon == pair.startIndex ? .token(secret) : .password(secret, user: String(pair[..<colon]))
    default: break
    }
    throw required(
      "the Authorization header is neither Basic, with user and password, nor Bearer, with a token")
  }

  static func required(_ message: String) -> AdminProblem {
    AdminProblem(401, message, HTTPHeader("WWW-Authenticate", "Basic realm=\"sluice\", charset=\"UTF-8\""))
  }

  /// The answer to a failed attempt to authenticate.
  static func problem(_ error: WireError) -> AdminProblem {
    switch error.code {
    case .tooManyAttempts: AdminProblem(429, error.message, HTTPHeader("Retry-After", "5"))
    case .shuttingDown: .unavailable(error.message)
    default: required(error.message)
    }
  }

  /// Checks that the identity may use the route: routes about the whole broker need `admin` on `>`, those about a topic `admin` on it.
  ///
  /// - Throws: 403 with the missing permission.
  static func check(_ identity: Identity, _ route: Route) throws(AdminProblem) {
    let permissions = identity.permissions
    if route.isOpen || permissions.isUnrestricted { return }
    switch route {
    // The broker checks these, and writes their audit lines.
    case .action: return
    case .topic(let name), .consumers(topic: .some(let name), filter: _, limit: _),
      .history(topic: .some(let name), seconds: _, step: _):
      guard permissions.allow(.admin, on: name) else { throw denied(identity, "admin on topic \(name)") }
    case .records(let name, _):
      guard permissions.allow([.admin, .subscribe], on: name) else {
        throw denied(identity, "admin and subscribe on topic \(name)")
      }
    default:
      let hasAll = permissions.rules.contains { $0.rights.contains(.admin) && $0.pattern.description == ">" }
      guard hasAll else { throw denied(identity, "admin on every topic, that is on >") }
    }
  }

  private static func denied(_ identity: Identity, _ rights: String) -> AdminProblem {
    .forbidden("\(identity.name) may not see this: it needs the right \(rights)")
  }
}

/// The identities of recently verified credentials, so that a page that sends a request every second doesn't cost a password hash each time.
///
/// Keeps digests under a random key, not the credentials. The caller checks whether the identity is still valid.
struct IdentityCache {
  private struct Entry {
    var identity: Identity
    var until: MonotonicTime
  }

  private let key = secureRandomBytes(32)
  private var entries: [[UInt8]: Entry] = [:]
  private static let lifetime = Duration.seconds(60)
  private static let capacity = 256

  subscript(credentials: Credentials, at now: MonotonicTime) -> Identity? {
    guard let entry = entries[digest(credentials)], entry.until > now else { return nil }
    return entry.identity
  }

  mutating func add(_ identity: Identity, for credentials: Credentials, at now: MonotonicTime) {
    if entries.count >= Self.capacity { entries = entries.filter { $0.value.until > now } }
    // When it is full of valid entries, further credentials are verified each time.
    guard entries.count < Self.capacity else { return }
    entries[digest(credentials)] = Entry(identity: identity, until: now + Self.lifetime)
  }

  mutating func remove(_ credentials: Credentials) {
    entries[digest(credentials)] = nil
  }

  private func digest(_ credentials: Credentials) -> [UInt8] {
    // A user name contains no zero byte, so different credentials have different texts.
    let text = "\(credentials.method.rawValue)\0\(credentials.user)\0\(credentials.secret)"
    return hmacSHA256(Array(text.utf8), key: key)
  }
}
