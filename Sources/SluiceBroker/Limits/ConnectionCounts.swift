import SluiceIO

/// Counts connections, in all and from each address. A value type: the caller adds and removes connections.
struct ConnectionCounts {
  enum Refusal: Hashable {
    case inAll
    case perOrigin
  }

  private(set) var total = 0
  /// Connections of the broker's own parts, to which no limit applies.
  private(set) var own = 0
  private var byOrigin: [PeerOrigin: Int] = [:]

  /// Counts a connection, unless a limit is reached.
  ///
  /// - Parameter origin: nil for a connection that only counts towards the total.
  mutating func add(from origin: PeerOrigin?, atMost limit: Int, perOrigin: Int) -> Refusal? {
    guard total < limit else { return .inAll }
    if let origin {
      guard byOrigin[origin, default: 0] < perOrigin else { return .perOrigin }
      byOrigin[origin, default: 0] += 1
    }
    total += 1
    return nil
  }

  /// Subtracts a connection that was added.
  mutating func remove(from origin: PeerOrigin?) {
    total -= 1
    guard let origin, let count = byOrigin[origin] else { return }
    byOrigin[origin] = count > 1 ? count - 1 : nil
  }

  mutating func addOwn() { own += 1 }

  mutating func removeOwn() { own -= 1 }

  var isEmpty: Bool { total == 0 && own == 0 }

  /// The number of addresses with connections.
  var origins: Int { byOrigin.count }
}
