import Glibc
import SluiceAdmin
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

/// The broker as a process: its output, its log, and its reactions to signals.
final class Daemon: Sendable {
  private let settings: BrokerConfiguration
  private let reload: SettingsReload
  private let logger: Logger
  private let manager: ServiceManager
  private let broker: Broker
  /// Nil for a broker of one node.
  private let cluster: DaemonCluster?
  /// Nil without an admin listener.
  private let admin: AdminServer?
  /// Whether this process has to look for problems regularly, since no admin listener does.
  private let looksForProblems: Bool
  /// The broker as the admin listener sees it.
  private let view: BrokerView
  /// Runs on the main thread, and delivers signals.
  private let loop: EpollLoop
  private let stops = Atomic(0)
  /// The limit on open files.
  private let descriptors: UInt64

  /// - Throws: `UsageError` when the system can't provide what the settings need.
  init(_ settings: DaemonSettings, from source: SettingsSource) throws(UsageError) {
    let logger = Logger(level: settings.logLevel, format: settings.logFormat)
    LogOutput.standardError.capacity = settings.logBuffer
    self.logger = logger
    manager = ServiceManager(logger)
    descriptors = Descriptors.raiseLimit()
    let fit = try SystemFit(settings, descriptors: descriptors, memory: SystemMemory.available())
    for note in fit.notes {
      logger.log(
        .warning, note.message,
        ["wanted": .number(note.wanted), "possible": .number(note.possible)])
    }
    let stated = settings
    var settings = settings
    settings.broker.limits = fit.limits
    view = BrokerView(authenticatesClients: settings.access.authenticatesClients)
    do {
      let loop = try EpollLoop(name: "signals")
      let log = BrokerLog(logger, audits: settings.access.isAudited) { milliseconds, body in
        loop.execute { [unowned loop] in _ = loop.schedule(after: .milliseconds(milliseconds), body) }
      }
      settings.broker.report = { log.note($0) }
      self.settings = settings.broker
      self.loop = loop
      let tls = try Startup.tlsServer(settings, logger)
      let adminTLS = try Startup.adminTLS(settings)
      admin = try Startup.adminServer(settings, view, adminTLS)
      looksForProblems = admin?.looksForProblems != true
      cluster = settings.cluster.isOn ? try DaemonCluster(settings, logger) : nil
      let peers = try Startup.clusterPeers(settings, tls)
      broker = try Startup.broker(settings, tls, cluster, peers, logger)
      reload = SettingsReload(stated, from: source, broker, tls, peers, adminTLS, logger, log)
      view.show(broker, cluster) { [reload] in reload.applied }
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("cannot start: \(error)")
    }
  }

  /// Listens, prints the addresses, and serves until a signal stops it. Blocks the calling thread.
  ///
  /// - Throws: `UsageError` when an address can't be bound; nothing was printed then.
  func run() throws(UsageError) {
    logger.warnAboutEnvironment(DaemonPage.page())
    let addresses: [SocketAddress]
    do {
      addresses = try broker.start()
    } catch {
      throw UsageError(Startup.explained(error))
    }
    view.addresses = addresses
    let signals = try listenForSignals()
    cluster?.start(broker)
    view.stage = .ready
    func print(_ line: String) {
      // A supervisor may close the pipe after reading what it needs. The broker continues without a reader.
      guard let complaint = ProgramOutput.write(line)?.ending.complaint else { return }
      logger.log(.warning, complaint, ["line": .text(String(line.dropLast()))])
    }
    func announce(_ word: String, _ message: String, at address: SocketAddress) {
      print("sluiced \(word) on \(address)\n")
      logger.log(.info, message, ["address": .text(address.description)])
      logger.warn(about: address, authenticatesClients: reload.access.authenticatesClients)
    }
    for address in addresses { announce("listening", "listening", at: address) }
    if let admin { announce("admin", "admin listener", at: admin.address) }
    print("sluiced ready\n")
    logger.log(
      .info, "ready",
      [
        "version": .text(Version.text), "pid": .number(getpid()),
        "loops": .number(settings.loops ?? LoopGroup.availableCores),
        "descriptors": .number(descriptors),
      ])
    manager.ready()
    let watchdog = Watchdog.interval().map { Watchdog(broker, notifying: manager, every: $0, on: loop) }
    watchdog?.start()
    let looks = looksForProblems ? ProblemLooks(broker, on: loop) : nil
    looks?.start()
    broker.whenStopped { [loop] in loop.stop() }
    loop.run()
    withExtendedLifetime((signals, watchdog, looks)) {}
    cluster?.close()
    admin?.stop()
    logger.log(.info, "stopped")
  }

  // MARK: Signals

  private func listenForSignals() throws(UsageError) -> ProcessSignals {
    do {
      return try ProcessSignals.deliver([.terminate, .interrupt, .hangUp, .user1], to: loop) {
        [self] signal in
        received(signal)
      }
    } catch {
      throw UsageError("cannot start: \(error)")
    }
  }

  private func received(_ signal: ProcessSignal) {
    if signal == .user1 { return logMetrics() }
    let name = Self.name(of: signal)
    guard signal != .hangUp else { return manager.whileReloading(reload.reread) }
    switch stops.add(1, ordering: .relaxed).newValue {
    case 1:
      logger.log(
        .info, "stopping",
        ["signal": .text(name), "drain": .text(TimeSpan.exact(settings.drainTime))])
      manager.stopping()
      view.stage = .stopping
      stop()
    case 2:
      logger.log(.warning, "stopping at once", ["signal": .text(name)])
      broker.stop()
    default:
      // The third signal ends the process at once.
      logger.flush()
      _exit(ExitCode.failure.rawValue)
    }
  }

  /// Stops in an orderly way. A node first hands over its shards, so that their topics continue at other nodes while this broker still relays.
  private func stop() {
    guard let cluster else { return broker.shutdown() }
    cluster.leave(within: settings.drainTime) { [loop, broker] in
      // A second signal may have stopped the broker meanwhile. Another call of `shutdown()` would stop it at once.
      loop.execute { [self] in
        if stops.load(ordering: .relaxed) == 1 { broker.shutdown() }
      }
    }
  }

  /// Logs all metrics of the broker in one line.
  private func logMetrics() {
    let metrics = broker.metrics
    logger.log(.info, "metrics", fields: BrokerMetric.allCases.map { ($0.name, .number(metrics[$0])) })
  }

  private static func name(of signal: ProcessSignal) -> String {
    switch signal {
    case .hangUp: "SIGHUP"
    case .interrupt: "SIGINT"
    case .terminate: "SIGTERM"
    case .user1: "SIGUSR1"
    }
  }
}
