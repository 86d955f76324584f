import SluiceIO

/// The addresses and identities that have logged in before, up to a limit. The oldest ones are dropped first.
///
/// A value without a clock.
struct KnownLogins {
  /// A set that drops its oldest members.
  private struct Recent<Member: Hashable> {
    let capacity: Int
    private var members: Set<Member> = []
    /// In the order of their insertion, as a ring that begins at `first`.
    private var order: [Member] = []
    private var first = 0

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ member: Member) -> Bool { members.contains(member) }

    mutating func insert(_ member: Member) {
      guard capacity > 0, members.insert(member).inserted else { return }
      guard order.count >= capacity else { return order.append(member) }
      members.remove(order[first])
      order[first] = member
      first = (first + 1) % capacity
    }
  }

  private var addresses: Recent<PeerOrigin>
  private var identities: Recent<String>

  init(capacity: Int) {
    addresses = Recent(capacity: capacity)
    identities = Recent(capacity: capacity)
  }

  /// Adds a successful login.
  ///
  /// - Parameter address: nil for a Unix socket.
  mutating func add(_ identity: String, from address: PeerOrigin?) {
    if let address { addresses.insert(address) }
    if !identity.isEmpty { identities.insert(identity) }
  }

  /// - Parameters:
  ///   - identity: the attempt's claimed identity; empty if there is none.
  ///   - hasFailed: whether attempts from the address have failed.
  func standing(of identity: String, from address: PeerOrigin?, hasFailed: Bool) -> AttemptStanding {
    guard let address, !addresses.contains(address) else { return .knownAddress }
    if hasFailed { return .failing }
    return identities.contains(identity) ? .knownIdentity : .new
  }
}
