import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

// Who may connect, and what they may do.
extension Daemon {
  /// Reads the files; nil where nobody is asked who they are.
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
      logger.log(.warning, "nobody may do anything: say who may do what with --permissions FILE")
    }
    return policy
  }

  var access: AccessSettings { running.withLock { $0.access } }

  /// Reads files again, and has what they say hold for everybody who is connected. What can't be read changes nothing.
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

  /// Says what is open to whom, where that may not be meant.
  func warn(about address: SocketAddress) {
    guard address.isReachedByOthers else { return }
    if !access.asksClients {
      logger.log(
        .warning, "whoever reaches this address can read and write every topic: nobody is asked who they are",
        ["address": .text(address.description)])
    } else if case .host = address {
      logger.log(
        .warning,
        "what goes to and from this address can be read on the way, passwords and tokens included: it is without TLS",
        ["address": .text(address.description)])
    }
  }
}
