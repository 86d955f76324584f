import Synchronization

/// The accounts of all owners that are connected or make the broker keep something. From any thread.
package final class KeptAccounts: Sendable {
  /// The bytes that one owner may make the broker keep besides records; 0 for no limit but the broker's.
  package struct Shares: Sendable {
    package var identity: Int
    package var address: Int

    package init(identity: Int = 0, address: Int = 0) {
      self.identity = identity
      self.address = address
    }
  }

  /// An account and its part of a share.
  package struct Fullness: Sendable {
    package var owner: KeptOwner
    package var used: Int
    package var share: Int
  }

  private struct Entry {
    let account: KeptAccount
    var connections = 0
  }

  /// The account of the broker's own parts and of restored objects.
  package let broker: KeptAccount
  private let nodes: KeptAccount
  private let shares: Shares
  private let memory: KeptMemory
  private let entries = Mutex<[KeptOwner: Entry]>([:])

  init(_ memory: KeptMemory, _ shares: Shares) {
    self.memory = memory
    self.shares = shares
    broker = KeptAccount(.broker, share: 0, in: memory)
    nodes = KeptAccount(.nodes, share: 0, in: memory)
  }

  /// Counts a connection, and returns its owner's account.
  package func enter(_ owner: KeptOwner) -> KeptAccount { account(of: owner, connections: 1) }

  /// The account of an owner without a connection.
  package func account(of owner: KeptOwner) -> KeptAccount { account(of: owner, connections: 0) }

  private func account(of owner: KeptOwner, connections: Int) -> KeptAccount {
    let share: Int
    switch owner {
    case .broker: return broker
    case .nodes: return nodes
    case .identity: share = shares.identity
    case .address, .unixSockets: share = shares.address
    }
    return entries.withLock { entries in
      var entry = entries[owner] ?? Entry(account: KeptAccount(owner, share: share, in: memory))
      entry.connections += connections
      entries[owner] = entry
      return entry.account
    }
  }

  /// Uncounts a connection. The account stays as long as the owner makes the broker keep something.
  package func leave(_ account: KeptAccount) {
    entries.withLock { entries in
      guard var entry = entries[account.owner] else { return }
      entry.connections -= 1
      entries[account.owner] = entry.connections == 0 && account.used == 0 ? nil : entry
    }
  }

  /// Removes accounts without connections that keep nothing. Called periodically.
  package func forget() {
    entries.withLock { entries in
      entries = entries.filter { $1.connections > 0 || $1.account.used > 0 }
    }
  }

  package var count: Int { entries.withLock { $0.count } }

  /// Accounts that have used at least that part of their share, those with the most bytes first.
  ///
  /// - Parameter limit: the most accounts.
  package func full(to part: Double, atMost limit: Int) -> [Fullness] {
    let full = entries.withLock { entries in
      entries.values.compactMap { entry -> Fullness? in
        let account = entry.account
        let used = account.used
        guard account.share > 0, Double(used) >= Double(account.share) * part else { return nil }
        return Fullness(owner: account.owner, used: used, share: account.share)
      }
    }
    return Array(
      full.sorted { ($1.used, $0.owner.description) < ($0.used, $1.owner.description) }.prefix(limit))
  }

  /// The owner that makes the broker keep the most, and how much; nil when none keeps anything.
  package var largest: Fullness? {
    let accounts = entries.withLock { $0.values.map(\.account) } + [broker, nodes]
    return accounts.map { Fullness(owner: $0.owner, used: $0.used, share: $0.share) }
      .filter { $0.used > 0 }.max { $0.used < $1.used }
  }
}
