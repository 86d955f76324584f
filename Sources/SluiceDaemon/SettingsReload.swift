import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceTLS
import SluiceWire
import Synchronization

/// Reads configuration, certificates and credentials again on SIGHUP. Used on the signals' loop, except for ``access``.
final class SettingsReload: Sendable {
  /// The sources of settings: command line, environment, file.
  private let source: SettingsSource
  /// The settings in force: those at the start, with the changes applied since.
  private let running: Mutex<DaemonSettings>
  private let broker: Broker
  /// Nil if no address uses TLS.
  private let tls: TLSServer?
  /// Nil if nodes don't authenticate each other.
  private let peers: ClusterPeers?
  /// Nil if the admin listener doesn't use TLS.
  private let adminTLS: TLSServer?
  private let logger: Logger
  private let log: BrokerLog

  init(
    _ settings: DaemonSettings, from source: SettingsSource, _ broker: Broker, _ tls: TLSServer?,
    _ peers: ClusterPeers?, _ adminTLS: TLSServer?, _ logger: Logger, _ log: BrokerLog
  ) {
    self.source = source
    running = Mutex(settings)
    self.broker = broker
    self.tls = tls
    self.peers = peers
    self.adminTLS = adminTLS
    self.logger = logger
    self.log = log
  }

  /// From any thread.
  var access: AccessSettings { running.withLock { $0.access } }

  func reread() {
    guard source.path != nil else {
      guard access.authenticatesClients || tls != nil else {
        return logger.log(.warning, "there is no file to read again", ["signal": .text("SIGHUP")])
      }
      if tls != nil, rereadCertificates() { rereadPeers(nil) }
      if access.authenticatesClients { rereadAccess(access.files) }
      return
    }
    do {
      follow(try source.settings())
    } catch {
      for line in error.lines {
        logger.log(
          .error, "the configuration stays unchanged: the file has a mistake", ["cause": .text(line)])
      }
    }
  }

  /// Applies new settings as far as possible without a restart, and logs changes and settings that need a restart.
  private func follow(_ new: DaemonSettings) {
    let old = running.withLock { $0 }
    var next = old
    // The new settings, including those of files that can't be read, since these are logged already.
    var wanted = old
    followLogAndTopics(new, &next, &wanted)
    if tls != nil {
      // Nil if no address uses TLS any more, which needs a restart.
      let options = try? new.tlsOptions()
      if options != nil { wanted.tls = new.tls }
      if rereadCertificates(options), options != nil {
        next.tls = new.tls
        if peers != nil, new.cluster.peerAuthorities != nil {
          (wanted.cluster.peerAuthorities, wanted.cluster.peers) = (
            new.cluster.peerAuthorities, new.cluster.peers
          )
          if rereadPeers(new) {
            (next.cluster.peerAuthorities, next.cluster.peers) = (
              new.cluster.peerAuthorities, new.cluster.peers
            )
          }
        }
      }
    }
    if old.access.authenticatesClients, new.access.authenticatesClients {
      wanted.access.files = new.access.files
      if rereadAccess(new.access.files) { next.access.files = new.access.files }
    }
    running.withLock { $0 = next }
    report(from: old, to: next, wanted: wanted, new)
  }

  private func followLogAndTopics(
    _ new: DaemonSettings, _ next: inout DaemonSettings, _ wanted: inout DaemonSettings
  ) {
    func adopt<Value>(_ setting: WritableKeyPath<DaemonSettings, Value>) {
      next[keyPath: setting] = new[keyPath: setting]
      wanted[keyPath: setting] = new[keyPath: setting]
    }
    adopt(\.logLevel)
    adopt(\.logFormat)
    adopt(\.logBuffer)
    adopt(\.access.audit)
    logger.change(level: new.logLevel, format: new.logFormat)
    LogOutput.standardError.capacity = new.logBuffer
    // Whether clients authenticate doesn't change, nor does the default for audit lines.
    log.audits = next.access.isAudited
    let (defaults, rules) = (new.broker.topicDefaults, new.broker.topicRules)
    // A broker without a directory can't have durable topics until a restart.
    let isDurable = defaults.storage == .durable || rules.contains { $0.settings.storage == .durable }
    guard next.data != nil || next.cluster.isOn || !isDurable else { return }
    broker.updateTopics(defaults: defaults, rules: rules)
    adopt(\.broker.topicDefaults)
    adopt(\.broker.topicRules)
  }

  private func report(
    from old: DaemonSettings, to next: DaemonSettings, wanted: DaemonSettings, _ new: DaemonSettings
  ) {
    var changes: Int64 = 0
    for setting in DaemonSettings.all() {
      let name = setting.key?.description ?? ConfigurationSection.rule
      let (before, after) = (setting.write(old), setting.write(next))
      if before != after {
        changes += 1
        logger.log(
          .info, "a setting has changed",
          ["setting": .text(name), "from": .text(before ?? ""), "to": .text(after ?? "")])
      }
      if setting.write(wanted) != setting.write(new) {
        logger.log(
          .warning, "a changed setting needs a restart",
          ["setting": .text(name), "now": .text(after ?? ""), "wanted": .text(setting.write(new) ?? "")])
      }
    }
    logger.log(
      .info, "the configuration was read again",
      ["file": .text(source.path ?? ""), "changes": .number(changes)])
  }

  /// Reads the access files again and applies them to all connections. If they can't be read, nothing changes.
  ///
  /// - Returns: whether they could be read.
  @discardableResult
  private func rereadAccess(_ files: AccessFiles) -> Bool {
    do {
      let policy = try files.load { logger.log(.warning, $0) }
      broker.updateAccess(policy)
      logger.log(
        .info, "users, keys and permissions were read again",
        [
          "users": .number(policy.users.count), "keys": .number(policy.tokenKeys.count),
          "identities": .number(policy.permissions.count),
        ])
      return true
    } catch {
      logger.log(
        .error, "users, keys and permissions stay unchanged: a file can't be used",
        ["cause": .text(error.description)])
      return false
    }
  }

  /// Reads the files with which nodes authenticate each other again. If they can't be used, nothing changes.
  ///
  /// - Parameter settings: the new settings; nil for the same files and names.
  /// - Returns: whether they could be used.
  @discardableResult
  private func rereadPeers(_ settings: DaemonSettings?) -> Bool {
    guard let peers, let tls else { return false }
    do {
      try peers.reload(settings, tls)
      return true
    } catch {
      logger.log(
        .error, "the authorities and names of other nodes stay unchanged: a file can't be used",
        ["cause": .text(error.description)])
      return false
    }
  }

  /// Reads certificates again. If they can't be read, nothing changes.
  ///
  /// - Parameter options: the new files; nil for the present ones.
  /// - Returns: whether they could be read.
  @discardableResult
  private func rereadCertificates(_ options: TLSServerOptions? = nil) -> Bool {
    guard let tls else { return false }
    do throws(TLSSetupError) {
      try tls.reload(options)
      try adminTLS?.reload(tls.options.withoutClients)
      logger.log(
        .info, "certificates were read again; connections stay open",
        [
          "certificate": .text(tls.options.certificate),
          "expires": .text(tls.expires.map { WallTime.format($0) } ?? "unknown"),
        ])
      Startup.warn(about: tls, logger)
      return true
    } catch {
      logger.log(
        .error, "certificates stay unchanged: a file can't be used",
        ["cause": .text(error.description)])
      return false
    }
  }
}
