import SluiceIO

/// How many connections there are, in all and from each place. A value: who comes and who goes is told.
struct ConnectionCounts {
  enum Refusal: Hashable {
    case inAll
    case perOrigin
  }

  private(set) var total = 0
  private var byOrigin: [PeerOrigin: Int] = [:]

  /// Another one, unless that is one too many.
  ///
  /// - Parameter origin: nil for one that counts only in all.
  mutating func add(from origin: PeerOrigin?, atMost limit: Int, perOrigin: Int) -> Refusal? {
    guard total < limit else { return .inAll }
    if let origin {
      guard byOrigin[origin, default: 0] < perOrigin else { return .perOrigin }
      byOrigin[origin, default: 0] += 1
    }
    total += 1
    return nil
  }

  /// One that was added has gone.
  mutating func remove(from origin: PeerOrigin?) {
    total -= 1
    guard let origin, let count = byOrigin[origin] else { return }
    byOrigin[origin] = count > 1 ? count - 1 : nil
  }

  /// Places that somebody is connected from.
  var origins: Int { byOrigin.count }
}
