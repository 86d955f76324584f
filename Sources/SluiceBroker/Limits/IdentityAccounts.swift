import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// The rates that the connections of one identity share. If rates are configured, each connection without an identity has an account of its own.
final class IdentityAccount: Sendable {
  let name: String
  /// Nil for an unlimited rate.
  let publishing: RateLimiter?
  let delivering: RateLimiter?

  init(_ name: String, _ limits: BrokerLimits, at now: MonotonicTime) {
    self.name = name
    publishing = RateLimiter(
      records: limits.identityPublishRecords, bytes: limits.identityPublishBytes, at: now)
    delivering = RateLimiter(
      records: limits.identityDeliveryRecords, bytes: limits.identityDeliveryBytes, at: now)
  }

  /// Whether nothing bounds what is published and delivered.
  fileprivate var isFree: Bool { publishing == nil && delivering == nil }

  /// Whether the account has no debt: an identity gains nothing by disconnecting and connecting again.
  fileprivate func isAtRest(at now: MonotonicTime) -> Bool {
    publishing?.isFull(at: now) ?? true && delivering?.isFull(at: now) ?? true
  }
}

/// The accounts of all identities that are connected, or were a short time ago. From any thread.
final class IdentityAccounts: Sendable {
  private struct Entry {
    var account: IdentityAccount
    var connections = 0
  }

  private let limits: BrokerLimits
  private let metrics: BrokerMetrics
  private let entries = Mutex<[String: Entry]>([:])
  /// The account shared by all connections without an identity if no rates are configured; otherwise nil.
  private let anonymous: IdentityAccount?

  init(_ limits: BrokerLimits, metrics: BrokerMetrics) {
    self.limits = limits
    self.metrics = metrics
    let account = IdentityAccount("", limits, at: MonotonicTime(nanoseconds: 0))
    anonymous = account.isFree ? account : nil
  }

  /// Counts a new connection and returns its account.
  ///
  /// - Throws: ``ErrorCode/tooManyConnections`` when the identity's limit is reached.
  func enter(_ name: String, at now: MonotonicTime) throws(WireError) -> IdentityAccount {
    guard !name.isEmpty else { return anonymous ?? IdentityAccount(name, limits, at: now) }
    let account = entries.withLock { entries -> IdentityAccount? in
      var entry = entries[name] ?? Entry(account: IdentityAccount(name, limits, at: now))
      guard entry.connections < limits.connectionsPerIdentity else { return nil }
      entry.connections += 1
      entries[name] = entry
      return entry.account
    }
    guard let account else {
      metrics.add(.refusedConnectionsPerIdentity)
      throw WireError(
        .tooManyConnections,
        "\(name) has \(limits.connectionsPerIdentity) connections, the limit for one identity; close some, or raise --max-connections-per-identity"
      )
    }
    return account
  }

  /// Subtracts a connection that has closed.
  func leave(_ account: IdentityAccount, at now: MonotonicTime) {
    guard !account.name.isEmpty else { return }
    entries.withLock { entries in
      guard var entry = entries[account.name] else { return }
      entry.connections -= 1
      let isOver = entry.connections == 0 && account.isAtRest(at: now)
      entries[account.name] = isOver ? nil : entry
    }
  }

  /// Removes accounts without connections and without debt. Called periodically.
  func forget(at now: MonotonicTime) {
    entries.withLock { entries in
      entries = entries.filter { $1.connections > 0 || !$1.account.isAtRest(at: now) }
    }
  }

  var count: Int { entries.withLock { $0.count } }
}
