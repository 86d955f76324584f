import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

// Authentication and authorisation.
extension Daemon {
  /// Reads the files; nil for a broker without authentication.
  ///
  /// - Throws: `UsageError` that names the file and its line.
  static func policy(_ settings: AccessSettings, _ logger: Logger) throws(UsageError) -> AccessPolicy? {
    guard settings.asksClients else { return nil }
    let policy: AccessPolicy
    do {
      policy = try settings.files.load { logger.log(.warning, $0) }
    } catch {
      throw UsageError(error.description)
    }
    if settings.files.permissions == nil, settings.files.tokenKeys == nil {
      logger.log(.warning, "no client has any permission: grant some with --permissions FILE")
    }
    return policy
  }

  var access: AccessSettings { running.withLock { $0.access } }

  /// Reads the files again and applies them to all connections. Files that can't be read change nothing.
  ///
  /// - Returns: whether they could be read.
  @discardableResult
  func rereadAccess(_ files: AccessFiles) -> Bool {
    do {
      let policy = try files.load { logger.log(.warning, $0) }
      broker.updateAccess(policy)
      logger.log(
        .info, "reread users, keys and permissions",
        [
          "users": .number(Int64(policy.users.count)), "keys": .number(Int64(policy.tokenKeys.count)),
          "identities": .number(Int64(policy.permissions.count)),
        ])
      return true
    } catch {
      logger.log(
        .error, "users, keys and permissions stay as they were: what was reread is wrong",
        ["cause": .text(error.description)])
      return false
    }
  }

  /// Warns of an address that other machines reach without authentication or without TLS.
  func warn(about address: SocketAddress) {
    guard address.isReachedByOthers else { return }
    if !access.asksClients {
      logger.log(
        .warning,
        "every client that reaches this address can read and write every topic: clients don't authenticate",
        ["address": .text(address.description)])
    } else if case .host = address {
      logger.log(
        .warning,
        "what goes to and from this address can be read on the way, passwords and tokens included: it is without TLS",
        ["address": .text(address.description)])
    }
  }
}
