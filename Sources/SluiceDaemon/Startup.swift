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

/// Makes the daemon's parts from its settings, and explains why that fails.
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
  ///   - peers: how nodes know each other; nil where they don't prove themselves.
  /// - Throws: `UsageError` for files and directories that can't be used, and what the broker refuses.
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
      // Without doors nothing is in the way.
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

  /// Reads the files; nil for a broker without authentication.
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

  /// Reads the files; nil where no address has TLS.
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

  /// Reads the files; nil where nodes don't prove themselves to each other.
  ///
  /// - Throws: `UsageError` that names the file.
  static func clusterPeers(_ settings: DaemonSettings, _ tls: TLSServer?) throws(UsageError) -> ClusterPeers?
  {
    guard let tls, settings.cluster.peerAuthorities != nil else { return nil }
    return try ClusterPeers(settings, tls)
  }

  /// Warns of a certificate that clients refuse, or will refuse soon.
  static func warn(about server: TLSServer, _ logger: Logger) {
    for warning in server.warnings { logger.log(.warning, warning) }
    if let expires = server.expires, expires <= WallTime.now {
      logger.log(
        .warning, "the certificate has expired: clients that verify it can't connect",
        ["certificate": .text(server.options.certificate), "expired": .text(WallTime.format(expires))])
    }
  }

  /// The certificate of the admin listener, whose visitors show none; nil where the listener has no TLS.
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

  /// Nil where it is off. Listens from now on, before there is a broker: until then it answers that the broker is starting.
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

  /// - Parameter option: the option that states the address.
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
  /// Warns of an address that other machines reach without authentication or without TLS.
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

  /// Warns of variables whose names resemble those of the daemon. They may belong to another program, so the daemon starts all the same.
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
  /// The same certificate for the admin listener, whose visitors show none.
  var withoutClients: TLSServerOptions { TLSServerOptions(certificate: certificate, key: key) }
}
