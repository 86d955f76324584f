import SluiceAccess
import SluiceIO
import SluiceTLS
import SluiceWire

/// Who has shown which credentials a moment ago, so that a page that asks every second doesn't cost a password's hash each time.
///
/// Keeps digests under a key that nobody else has, not the credentials. Whether the identity still holds is for the caller to ask.
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
    // Full of people who are in: the next one is asked each time.
    guard entries.count < Self.capacity else { return }
    entries[digest(credentials)] = Entry(identity: identity, until: now + Self.lifetime)
  }

  mutating func remove(_ credentials: Credentials) {
    entries[digest(credentials)] = nil
  }

  private func digest(_ credentials: Credentials) -> [UInt8] {
    // No name of a user has a zero byte that is let in, so nobody else's credentials are the same text.
    let text = "\(credentials.method.rawValue)\0\(credentials.user)\0\(credentials.secret)"
    return hmacSHA256(Array(text.utf8), key: key)
  }
}
