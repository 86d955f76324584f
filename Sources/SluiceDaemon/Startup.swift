import Glibc
import SluiceAccess
import SluiceAdmin
import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceDoors
import SluiceIO
import SluiceStore
import SluiceStoreLMDB
import SluiceTLS

/// Creates the daemon's parts from its settings, and explains failures.
enum Startup {
  /// Checks the settings, and the files that they name, without starting.
  ///
  /// - Throws: ``ConfigurationMistakes``.
  static func check(_ source: SettingsSource) throws(ConfigurationMistakes) {
    let settings = try source.settings()
    let logger = Logger(level: .warning, format: settings.logFormat)
    var lines: [String] = []
    do {
      _ = try policy(settings.access, logger)
    } catch {
      lines.append(source.attributed(error.description))
    }
    do {
      let tls = try tlsServer(settings, logger)
      _ = try clusterPeers(settings, tls)
    } catch {
      lines.append(source.attributed(error.description))
    }
    if settings.cluster.isOn {
      do {
        _ = try settings.clusterOptions()
      } catch {
        lines.append(source.attributed(error.description))
      }
    }
    if !lines.isEmpty { throw ConfigurationMistakes(lines: lines) }
  }

  /// - Parameters:
  ///   - cluster: the node; nil for a broker of one node.
  ///   - peers: how nodes authenticate each other; nil if they don't.
  /// - Throws: `UsageError` for files and directories that can't be used; and errors of the broker.
  static func broker(
    _ settings: DaemonSettings, _ tls: TLSServer?, _ cluster: DaemonCluster?, _ peers: ClusterPeers?,
    _ logger: Logger
  ) throws -> Broker {
    let doorLog = DoorLog(logger)
    let broker = try self.broker(settings, tls, cluster, peers, logger, doorLog)
    doorLog.count(in: broker.metrics)
    return broker
  }

  private static func broker(
    _ settings: DaemonSettings, _ tls: TLSServer?, _ cluster: DaemonCluster?, _ peers: ClusterPeers?,
    _ logger: Logger, _ doorLog: DoorLog
  ) throws -> Broker {
    let handshakes = HandshakeLog(logger)
    func secure(_ network: any Network) -> any Network {
      let layer = tls.map { TLSNetwork(over: network, server: $0) { handshakes.note($0, $1) } } ?? network
      // Without gateways, connections need no further layer.
      guard settings.broker.listen.contains(where: { $0.door != nil }) else { return layer }
      var doors = settings.doors
      doors.keepsSessions = settings.data != nil && cluster == nil
      return DoorNetwork(over: layer, doors, cluster: cluster?.doors) { doorLog.note($0) }
    }
    let policy = try policy(settings.access, logger)
    var configuration = settings.broker
    configuration.problems = settings.admin.problemLimits
    if let cluster {
      configuration.peers = peers?.security
      return try Broker(configuration, routes: cluster.member.routes, access: policy, layer: secure)
    }
    guard let directory = settings.data else {
      return try Broker(configuration, access: policy, layer: secure)
    }
    let log = StorageLog(logger, directory: directory)
    do {
      var options = LMDBStore.Options()
      options.limit = settings.storageLimit
      let store = try LMDBStore.open(at: directory, options)
      return try Broker(
        configuration, storage: StoreConfiguration(store) { log.note($0) }, access: policy, layer: secure)
    } catch let error as StoreError {
      throw UsageError("--data: \(error)")
    }
  }

  /// Reads the access files; nil for a broker without authentication.
  ///
  /// - Throws: `UsageError` that names the file and its line.
  static func policy(_ settings: AccessSettings, _ logger: Logger) throws(UsageError) -> AccessPolicy? {
    guard settings.authenticatesClients else { return nil }
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

  /// Reads the TLS files; nil if no address uses TLS.
  ///
  /// - Throws: `UsageError` that names the file.
  static func tlsServer(_ settings: DaemonSettings, _ logger: Logger) throws(UsageError) -> TLSServer? {
    guard let options = try settings.tlsOptions() else { return nil }
    do throws(TLSSetupError) {
      let server = try TLSServer(options)
      warn(about: server, logger)
      return server
    } catch {
      throw UsageError("TLS can't be set up: \(error)")
    }
  }

  /// Reads the files for the authentication of nodes; nil if nodes don't authenticate each other.
  ///
  /// - Throws: `UsageError` that names the file.
  static func clusterPeers(_ settings: DaemonSettings, _ tls: TLSServer?) throws(UsageError) -> ClusterPeers?
  {
    guard let tls, settings.cluster.peerAuthorities != nil else { return nil }
    return try ClusterPeers(settings, tls)
  }

  /// Logs warnings about a certificate that clients reject, or will reject soon.
  static func warn(about server: TLSServer, _ logger: Logger) {
    for warning in server.warnings { logger.log(.warning, warning) }
    if let expires = server.expires, expires <= WallTime.now {
      logger.log(
        .warning, "the certificate has expired: clients that verify it can't connect",
        ["certificate": .text(server.options.certificate), "expired": .text(WallTime.format(expires))])
    }
  }

  /// The TLS configuration of the admin listener, whose visitors present no certificates; nil if the listener doesn't use TLS.
  ///
  /// - Throws: `UsageError` that names the file.
  static func adminTLS(_ settings: DaemonSettings) throws(UsageError) -> TLSServer? {
    guard settings.admin.address?.hasTLS == true, let files = try settings.tlsOptions() else { return nil }
    do throws(TLSSetupError) {
      return try TLSServer(files.withoutClients)
    } catch {
      throw UsageError("TLS can't be set up: \(error)")
    }
  }

  /// Starts the admin listener; nil if it is off. It listens before the broker exists, and until then answers that the broker is starting.
  ///
  /// - Throws: `UsageError` when the address can't be bound.
  static func adminServer(
    _ settings: DaemonSettings, _ view: BrokerView, _ tls: TLSServer?
  ) throws(UsageError) -> AdminServer? {
    guard let address = settings.admin.address else { return nil }
    var options = AdminOptions()
    options.topics = settings.admin.topics
    options.groups = settings.admin.groups
    options.cursors = settings.admin.cursors
    options.history.length = settings.admin.history.clampedNanoseconds / 1_000_000
    options.history.topics = settings.admin.historyTopics
    options.problems = settings.admin.problemLimits
    options.limits = settings.admin.limits
    options.actions = settings.admin.actions
    options.isLocal = !address.isReachedByOthers
    options.version = Version.text
    options.tls = tls
    do {
      return try AdminServer(at: address, view, options)
    } catch {
      throw UsageError(
        "\(explained(error, option: "admin")); to start without the admin listener: --admin off")
    }
  }

  /// - Parameter option: the option with the address.
  static func explained(_ error: any Error, option: String = "listen") -> String {
    guard let error = error as? IOError else { return "cannot start: \(error)" }
    let advice =
      switch error.code {
      case EADDRINUSE: "; stop the program that uses it, or choose another address with --\(option)"
      case EACCES, EPERM:
        "; choose a port of 1024 or above, or a path that this user may write, with --\(option)"
      case ENOENT, ENOTDIR: "; choose a path in a directory that exists with --\(option)"
      case EADDRNOTAVAIL: "; this machine has no such address: choose another with --\(option)"
      default: ""
      }
    return "cannot \(error)\(advice)"
  }
}

/// Warnings about settings that are probably mistakes.
extension Logger {
  /// Warns about an address that other machines can reach without authentication or without TLS.
  func warn(about address: SocketAddress, authenticatesClients: Bool) {
    guard address.isReachedByOthers else { return }
    if !authenticatesClients {
      log(
        .warning,
        "every client that reaches this address can read and write every topic: clients don't authenticate",
        ["address": .text(address.description)])
    } else if !address.hasTLS {
      log(
        .warning,
        "this address has no TLS: passwords, tokens and records can be read on the way; listen on tls://HOST:PORT",
        ["address": .text(address.description)])
    }
  }

  /// Warns about variables whose names resemble those of the daemon. They may belong to another program, so the daemon starts anyway.
  func warnAboutEnvironment(_ page: CommandPage) {
    let known = page.options.compactMap(\.environment)
    for name in Environment.names(withPrefix: "SLUICED_") where !known.contains(name) {
      guard let nearest = Spelling.nearest(to: name, in: known) else { continue }
      log(
        .warning, "an environment variable isn't known, and was ignored",
        ["name": .text(name), "nearest": .text(nearest)])
    }
  }
}

extension TLSServerOptions {
  /// The same certificate for the admin listener, whose visitors present none.
  var withoutClients: TLSServerOptions { TLSServerOptions(certificate: certificate, key: key) }
}
