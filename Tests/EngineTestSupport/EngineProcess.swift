import Glibc
import SluiceNATS
import Synchronization
import TestSupport

/// A real `nats-server` with its own address and directory.
public final class EngineProcess: Sendable {
  /// The path of the program; nil if it isn't installed.
  public static let program: String? = {
    if let path = getenv("SLUICE_NATS_SERVER").map({ String(cString: $0) }), !path.isEmpty { return path }
    let checkout = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
    let path = checkout.joined(separator: "/") + "/.build/engine/nats-server-2.15.1"
    return access(path, X_OK) == 0 ? path : nil
  }()

  public static let isMissing = "nats-server isn't installed: scripts/nats-server.sh installs it"

  public let name: String
  public let host: String
  private let directory: TemporaryDirectory
  private let process: Mutex<ChildProcess?> = Mutex(nil)

  /// - Parameters:
  ///   - settings: lines in addition to those for the address, the name and JetStream.
  ///   - jetStream: settings of JetStream; nil for none.
  public init(
    _ name: String = "n1", host: String = Loopback.freshHost(), settings: String = "",
    jetStream: String? = "sync_interval: always"
  ) throws {
    self.name = name
    self.host = host
    directory = try TemporaryDirectory()
    let storage = jetStream.map {
      "jetstream { store_dir: \"\(directory.path)/store\", max_memory_store: 64MB, max_file_store: 1GB, \($0) }"
    }
    try write(
      """
      listen: "\(host):4222"
      server_name: \(name)
      write_deadline: 10s
      \(storage ?? "")
      \(settings)
      """, to: directory.file("server.conf"))
  }

  deinit {
    kill()
    _ = try? ChildProcess("/bin/rm", ["-rf", directory.path + "/store"]).waitForExit()
  }

  public var address: NATSAddress { NATSAddress(host) }

  /// Starts it, and waits until it accepts connections.
  public func start() throws {
    let child = try ChildProcess(Self.program!, ["-c", directory.file("server.conf")], output: .nothing)
    process.withLock { $0 = child }
    try eventually("\(name) is ready; \(child.messages)") {
      if let exit = child.currentExit { throw TestFailure("nats-server ended: \(exit): \(child.messages)") }
      return child.standardError.text.contains("Server is ready")
    }
  }

  /// Kills it without notice, as if its machine were gone.
  public func kill() {
    let child = process.withLock { $0.take() }
    child?.stop()
  }

  public func signal(_ number: Int32) { process.withLock { $0?.signal(number) } }

  public var log: String { process.withLock { $0?.standardError.text ?? "" } }
}

/// Three servers that replicate.
public final class EngineCluster: Sendable {
  public let servers: [EngineProcess]

  /// - Parameter accounts: settings of accounts; the default lets clients request the servers' settings.
  public init(accounts: String = EngineCluster.accounts) throws {
    let hosts = (0..<3).map { _ in Loopback.freshHost() }
    servers = try hosts.enumerated().map { number, host in
      let routes = hosts.map { "\"nats://\($0):6222\"" }.joined(separator: ", ")
      return try EngineProcess(
        "n\(number + 1)", host: host,
        settings: """
          cluster { name: test, listen: "\(host):6222", routes: [\(routes)] }
          \(accounts)
          """)
    }
    for server in servers { try server.start() }
  }

  public static let accounts = """
    accounts {
      SYS {
        users: [{ user: system, password: secret }]
        exports: [{ service: "$SYS.REQ.SERVER.PING.JSZ", response: stream, accounts: [APP] }]
      }
      APP {
        jetstream: enabled, users: [{ user: app, password: secret }]
        imports: [{ service: { account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ" } }]
      }
    }
    system_account: SYS
    """

  public func server(_ name: String) -> EngineProcess { servers.first { $0.name == name }! }
}
