import Glibc
import SluiceAdmin
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceStore
import SluiceStoreLMDB
import SluiceTLS
import Synchronization

/// The broker as a process: its output, its log, and its reactions to signals.
final class Daemon: Sendable {
  private let settings: BrokerConfiguration
  /// Where settings come from: command line, environment, file.
  let source: SettingsSource
  /// The settings in force: those of the start, with the changes that rereading has applied.
  let running: Mutex<DaemonSettings>
  let logger: Logger
  /// Writes the broker's events to the log.
  let log: BrokerLog
  private let manager: ServiceManager
  let broker: Broker
  /// Nil where no address has TLS.
  let tls: TLSServer?
  /// Nil where there is no admin listener.
  private let admin: AdminServer?
  /// The broker as the admin listener sees it.
  private let view: BrokerView
  /// Runs on the main thread, and delivers signals.
  private let loop: EpollLoop
  private let stops = Atomic(0)
  /// The limit on open files.
  private let descriptors: UInt64

  /// - Throws: `UsageError` when the system can't give what the settings ask for.
  init(_ settings: DaemonSettings, from source: SettingsSource) throws(UsageError) {
    self.source = source
    running = Mutex(settings)
    let logger = Logger(level: settings.logLevel, format: settings.logFormat)
    LogOutput.standardError.capacity = settings.logBuffer
    self.logger = logger
    manager = ServiceManager(logger)
    descriptors = Descriptors.raiseLimit()
    let fit = try SystemFit(settings, descriptors: descriptors, memory: SystemMemory.available())
    for note in fit.notes {
      logger.log(
        .warning, note.message,
        ["wanted": .number(Int64(note.wanted)), "possible": .number(Int64(note.possible))])
    }
    var settings = settings
    settings.broker.limits = fit.limits
    view = BrokerView(asksClients: settings.access.asksClients)
    do {
      let loop = try EpollLoop(name: "signals")
      let log = BrokerLog(logger, audits: settings.access.isAudited) { milliseconds, body in
        loop.execute { [unowned loop] in _ = loop.schedule(after: .milliseconds(milliseconds), body) }
      }
      self.log = log
      settings.broker.report = { log.note($0) }
      self.settings = settings.broker
      self.loop = loop
      tls = try Self.tlsServer(settings, logger)
      admin = try Self.adminServer(settings, view)
      broker = try Self.broker(settings, tls, logger)
      view.show(broker)
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("cannot start: \(error)")
    }
  }

  private static func broker(
    _ settings: DaemonSettings, _ tls: TLSServer?, _ logger: Logger
  ) throws -> Broker {
    let handshakes = HandshakeLog(logger)
    func secure(_ network: any Network) -> any Network {
      guard let tls else { return network }
      return TLSNetwork(over: network, server: tls) { handshakes.note($0, $1) }
    }
    let policy = try policy(settings.access, logger)
    guard let directory = settings.data else {
      return try Broker(settings.broker, access: policy, layer: secure)
    }
    let log = StorageLog(logger, directory: directory)
    do {
      var options = LMDBStore.Options()
      options.limit = settings.storageLimit
      let store = try LMDBStore.open(at: directory, options)
      return try Broker(
        settings.broker, storage: StoreConfiguration(store) { log.note($0) }, access: policy, layer: secure)
    } catch let error as StoreError {
      throw UsageError("--data: \(error)")
    }
  }

  /// Listens, says so, and serves until a signal ends it. Blocks the calling thread.
  ///
  /// - Throws: `UsageError` when an address can't be bound; nothing has been printed then.
  func run() throws(UsageError) {
    let addresses: [SocketAddress]
    do {
      addresses = try broker.start()
    } catch {
      throw UsageError(Self.explained(error))
    }
    let signals = try listenForSignals()
    view.stage = .ready
    for address in addresses {
      Descriptor.write("sluiced listening on \(address)\n", to: STDOUT_FILENO)
      logger.log(.info, "listening", ["address": .text(address.description)])
      warn(about: address)
    }
    if let admin {
      Descriptor.write("sluiced admin on \(admin.address)\n", to: STDOUT_FILENO)
      logger.log(.info, "admin listener", ["address": .text(admin.address.description)])
      warn(about: admin.address)
    }
    Descriptor.write("sluiced ready\n", to: STDOUT_FILENO)
    logger.log(
      .info, "ready",
      [
        "version": .text(Version.text), "pid": .number(Int64(getpid())),
        "loops": .number(Int64(settings.loops ?? LoopGroup.availableCores)),
        "descriptors": .number(Int64(descriptors)),
      ])
    manager.ready()
    let watchdog = Watchdog.interval().map { Watchdog(broker, tells: manager, every: $0, on: loop) }
    watchdog?.start()
    broker.whenStopped { [loop] in loop.stop() }
    loop.run()
    withExtendedLifetime((signals, watchdog)) {}
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
    guard signal != .hangUp else { return manager.whileReloading(reread) }
    switch stops.add(1, ordering: .relaxed).newValue {
    case 1:
      logger.log(
        .info, "stopping",
        ["signal": .text(name), "drain": .text(TimeSpan.exact(settings.drainTime))])
      manager.stopping()
      view.stage = .stopping
      broker.shutdown()
    case 2:
      logger.log(.warning, "stopping at once", ["signal": .text(name)])
      broker.stop()
    default:
      // The third signal ends the process at once.
      logger.flush()
      _exit(ExitCode.failure.rawValue)
    }
  }

  /// All of the broker's numbers in one line.
  private func logMetrics() {
    let metrics = broker.metrics
    logger.log(.info, "metrics", fields: BrokerMetric.allCases.map { ($0.name, .number(Int64(metrics[$0]))) })
  }

  private static func name(of signal: ProcessSignal) -> String {
    switch signal {
    case .hangUp: "SIGHUP"
    case .interrupt: "SIGINT"
    case .terminate: "SIGTERM"
    case .user1: "SIGUSR1"
    }
  }

  // MARK: Checks and messages

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
      _ = try tlsServer(settings, logger)
    } catch {
      lines.append(source.attributed(error.description))
    }
    if !lines.isEmpty { throw ConfigurationMistakes(lines: lines) }
  }

  /// Warns of variables whose names resemble those of the daemon. They may belong to another program, so the daemon starts all the same.
  func warnAboutEnvironment(_ page: CommandPage) {
    let known = page.options.compactMap(\.environment)
    for name in Environment.names(withPrefix: "SLUICED_") where !known.contains(name) {
      guard let nearest = Spelling.nearest(to: name, in: known) else { continue }
      logger.log(
        .warning, "this environment variable means nothing here",
        ["name": .text(name), "nearest": .text(nearest)])
    }
  }

  /// - Parameter option: the option that states the address.
  static func explained(_ error: any Error, option: String = "listen") -> String {
    guard let error = error as? IOError else { return "cannot start: \(error)" }
    let advice =
      switch error.code {
      case EADDRINUSE: "; stop the program that has it, or choose another address with --\(option)"
      case EACCES, EPERM: "; choose a port from 1024 on, or a path that this user may write, with --\(option)"
      case ENOENT, ENOTDIR: "; choose a path in a directory that exists with --\(option)"
      case EADDRNOTAVAIL: "; this machine has no such address: choose another with --\(option)"
      default: ""
      }
    return "cannot \(error)\(advice)"
  }
}
