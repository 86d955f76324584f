import Glibc
import SluiceWire

/// A separate `sluiced` for a test, on a free port of the loopback interface.
///
/// It ends with this object, and with the last of its clients. Safe from any thread.
public final class BrokerProcess: Sendable {
  public let process: ChildProcess
  /// The address on which it accepts connections, `HOST:PORT`.
  public var address: String { addresses[0] }
  /// That address, and those requested with `--listen` in the options.
  public let addresses: [String]
  /// The address of its admin listener; nil unless requested with `--admin` in the options.
  public let adminAddress: String?

  /// Starts it with these additional options, and waits until it reports that it is ready.
  ///
  /// Its deadlines are long by default, so that it disconnects no client because the machine is slow.
  public convenience init(_ options: String...) throws {
    try self.init(options: options)
  }

  /// The same, with the options as an array.
  public init(options: [String]) throws {
    try raiseDescriptorLimit()
    var patience: [String] = []
    for option in ["--keepalive", "--handshake", "--drain"] where !options.contains(option) {
      patience += [option, "15m"]
    }
    // Use a free port, and no admin listener unless requested.
    if !options.contains("--admin") { patience += ["--admin", "off"] }
    process = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", "\(Loopback.freshHost()):0"] + patience + options)
    let listening = "sluiced listening on "
    do {
      _ = try process.standardOutput.line(startingWith: "sluiced ready")
      addresses = process.standardOutput.lines.filter { $0.hasPrefix(listening) }
        .map { String($0.dropFirst(listening.count)) }
      let admin = "sluiced admin on "
      adminAddress = process.standardOutput.lines.first { $0.hasPrefix(admin) }.map {
        String($0.dropFirst(admin.count))
      }
    } catch {
      throw TestFailure("sluiced didn't start: \(error); \(process.messages)")
    }
  }

  /// Connects a client, before the handshake. The client keeps the broker running.
  ///
  /// - Parameter source: the client's address; nil for the system's choice.
  public func connect(receiveBuffer: Int? = nil, from source: String? = nil) throws -> RawClient {
    let client = try RawClient(address, receiveBuffer: receiveBuffer, from: source)
    client.broker = self
    return client
  }

  /// Connects a client and completes the handshake.
  public func client(
    _ name: String = "test", keepalive: UInt32 = 0, maximumFrame: UInt32 = 4 << 20, receiveBuffer: Int? = nil,
    from source: String? = nil
  ) throws -> RawClient {
    let client = try connect(receiveBuffer: receiveBuffer, from: source)
    try client.shakeHands(name: name, keepalive: keepalive, maximumFrame: maximumFrame)
    return client
  }

  /// The broker's description of a topic, requested on a new connection: an idle one might time out between two requests.
  public func show(_ topic: String) throws -> TopicInfo {
    try client("observer").show(topic)
  }

  /// Checks that it still runs: in the tests only a signal ends it.
  public func requireRunning() throws {
    if let exit = process.currentExit {
      throw TestFailure("sluiced has ended: \(exit); \(process.messages)")
    }
  }

  public var memory: ProcessMemory {
    get throws { try ProcessMemory(of: process.pid) }
  }

  /// Sends SIGTERM, and waits for the exit.
  @discardableResult
  public func terminate(within seconds: Double = Deadline.patience) throws -> ChildProcess.Exit {
    process.signal(SIGTERM)
    return try process.waitForExit(within: seconds)
  }
}

/// Raises this process's limit of descriptors, which its children inherit, to the hard limit.
private func raiseDescriptorLimit() throws {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
