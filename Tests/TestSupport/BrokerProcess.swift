import Glibc
import SluiceWire

/// A `sluiced` of its own for a test, on a free port of the loopback interface.
///
/// Goes away with this object, and with the last of its clients. From any thread.
public final class BrokerProcess: Sendable {
  public let process: ChildProcess
  /// Where it accepts connections, `HOST:PORT`.
  public var address: String { addresses[0] }
  /// The same, and those that were asked for with `--listen` in the options.
  public let addresses: [String]
  /// Where its admin listener is; nil unless it was asked for with `--admin` in the options.
  public let adminAddress: String?

  /// Starts it with these options more, and waits until it says that it is ready.
  ///
  /// Unless the options say otherwise its deadlines are long: it disconnects no client because the machine is slow.
  public convenience init(_ options: String...) throws {
    try self.init(options: options)
  }

  /// The same.
  public init(options: [String]) throws {
    try raiseDescriptorLimit()
    var patience: [String] = []
    for option in ["--keepalive", "--handshake", "--drain"] where !options.contains(option) {
      patience += [option, "15m"]
    }
    // A port of its own, and none for a listener that isn't requested.
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

  /// A client of it, before the handshake. It keeps the broker running.
  ///
  /// - Parameter source: the address to come from; nil for the system's choice.
  public func connect(receiveBuffer: Int? = nil, from source: String? = nil) throws -> RawClient {
    let client = try RawClient(address, receiveBuffer: receiveBuffer, from: source)
    client.broker = self
    return client
  }

  /// A client of it, after the handshake.
  public func client(
    _ name: String = "test", keepalive: UInt32 = 0, maximumFrame: UInt32 = 4 << 20, receiveBuffer: Int? = nil,
    from source: String? = nil
  ) throws -> RawClient {
    let client = try connect(receiveBuffer: receiveBuffer, from: source)
    try client.shakeHands(name: name, keepalive: keepalive, maximumFrame: maximumFrame)
    return client
  }

  /// What the broker says of a topic, asked on a connection of its own: one that waits between two questions might be given up.
  public func show(_ topic: String) throws -> TopicInfo {
    try client("observer").show(topic)
  }

  /// Nothing in the tests is a reason for it to end but a signal.
  public func requireRunning() throws {
    if let exit = process.currentExit {
      throw TestFailure("sluiced has ended: \(exit); \(process.messages)")
    }
  }

  public var memory: ProcessMemory {
    get throws { try ProcessMemory(of: process.pid) }
  }

  /// Asks it to stop, and waits for that.
  @discardableResult
  public func terminate(within seconds: Double = Deadline.patience) throws -> ChildProcess.Exit {
    process.signal(SIGTERM)
    return try process.waitForExit(within: seconds)
  }
}

/// Lets this process, and those that it starts, have as many descriptors as the system allows.
private func raiseDescriptorLimit() throws {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
