import Glibc
import SluiceIO

/// The network of a simulated world: listeners and connections between its loops, without a socket.
///
/// Addresses are compared as they are written; `0.0.0.0` and `[::]` listen for every host. Nothing is looked up.
///
/// Unchecked: see `SimulatedLoop`.
public final class SimulatedNetwork: Network, @unchecked Sendable {
  public var placement = ConnectionPlacement.leastLoaded

  /// From the loops of one name to an address.
  private struct Way: Hashable {
    var origin: String
    var target: SocketAddress
  }

  private let scheduler: SimulatedScheduler
  private let settings: SimulatedSettings
  private var listeners: [SocketAddress: SimulatedListener] = [:]
  private var cutAddresses: Set<SocketAddress> = []
  private var cutWays: Set<Way> = []
  private var knocking: [SimulatedConnect] = []
  private var opened = 0
  private var nextPort: UInt16 = 49_152

  /// The connections that aren't over, in the order in which they were opened.
  public private(set) var connections: [SimulatedConnection] = []

  init(scheduler: SimulatedScheduler, settings: SimulatedSettings) {
    self.scheduler = scheduler
    self.settings = settings
  }

  // MARK: Network

  public func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    let loops = group.loops.map(Self.own)
    var bound = address
    if case .host(let host, 0) = address {
      repeat { bound = .host(host, port: takePort()) } while listeners[bound] != nil
    }
    guard listeners[bound] == nil else { throw IOError(action: "listen at \(address)", code: EADDRINUSE) }
    let listener = SimulatedListener(network: self, address: bound, loops: loops, accepted: accepted)
    listeners[bound] = listener
    scheduler.note("listening at \(bound)")
    return listener
  }

  public func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    let attempt = SimulatedConnect(loop: Self.own(loop), target: address, completion: completion)
    precondition(loop.isCurrent, "a connection is opened on its loop")
    scheduler.schedule(after: latency()) { [unowned self] in knock(attempt) }
    return attempt
  }

  private static func own(_ loop: any EventLoop) -> SimulatedLoop {
    guard let loop = loop as? SimulatedLoop else {
      preconditionFailure("a simulated network needs simulated loops")
    }
    return loop
  }

  private func takePort() -> UInt16 {
    defer { nextPort = nextPort == .max ? 49_152 : nextPort + 1 }
    return nextPort
  }

  private func latency() -> Duration { scheduler.random.next(in: settings.conditions.latency) }

  // MARK: Opening

  /// The first packet of an attempt arrives.
  private func knock(_ attempt: SimulatedConnect) {
    if attempt.isAbandoned { return }
    if isCut(from: attempt.loop, to: attempt.target) {
      knocking.append(attempt)
      return
    }
    guard let listener = listener(at: attempt.target),
      !scheduler.random.oneIn(settings.conditions.refusedOneIn)
    else {
      scheduler.note("connection to \(attempt.target) refused")
      attempt.result = .failure(IOError(action: "connect to \(attempt.target)", code: ECONNREFUSED))
      return scheduler.schedule(after: latency()) { attempt.answered() }
    }
    connections.removeAll(where: \.isOver)
    opened += 1
    let index = placement.choose(from: listener.loops.map(\.streamCount))
    let loop = listener.loops[index]
    let connection = SimulatedConnection(
      number: opened, address: listener.address, origin: .host("127.0.0.1", port: takePort()),
      clientLoop: attempt.loop, serverLoop: loop, scheduler: scheduler, settings: settings)
    connections.append(connection)
    scheduler.note("\(opened): \(attempt.loop.name) connects to \(listener.address), on \(loop.name)")
    plan(for: connection)
    loop.execute { listener.accepted(connection.serverSide, loop) }
    attempt.result = .success(connection.clientSide)
    scheduler.schedule(after: latency()) { attempt.answered() }
  }

  private func listener(at address: SocketAddress) -> SimulatedListener? {
    if let listener = listeners[address] { return listener }
    guard case .host(_, let port) = address else { return nil }
    return listeners[.host("0.0.0.0", port: port)] ?? listeners[.host("::", port: port)]
  }

  func closed(_ listener: SimulatedListener) {
    guard listeners[listener.address] === listener else { return }
    scheduler.note("no longer listening at \(listener.address)")
    listeners[listener.address] = nil
  }

  // MARK: Faults

  /// Cuts every connection that was accepted at `address`, and lets no new one through: attempts hang.
  public func cut(_ address: SocketAddress) {
    cutAddresses.insert(address)
    for connection in connections where connection.address == address { connection.cut() }
  }

  /// Ends a cut. Attempts that hang and weren't abandoned get through after a while.
  public func heal(_ address: SocketAddress) {
    cutAddresses.remove(address)
    healed(address)
  }

  /// As ``cut(_:)``, for connections from loops of that name only: also from those that are made later, as a process that is started again.
  public func cut(from origin: String, to address: SocketAddress) {
    cutWays.insert(Way(origin: origin, target: address))
    for connection in connections where connection.address == address && isCut(connection) {
      connection.cut()
    }
  }

  /// Ends a cut that was made with ``cut(from:to:)``.
  public func heal(from origin: String, to address: SocketAddress) {
    if cutWays.remove(Way(origin: origin, target: address)) != nil { healed(address) }
  }

  private func isCut(from loop: SimulatedLoop, to address: SocketAddress) -> Bool {
    cutAddresses.contains(address) || cutWays.contains(Way(origin: loop.name, target: address))
  }

  private func isCut(_ connection: SimulatedConnection) -> Bool {
    isCut(from: connection.clientSide.loop, to: connection.address)
  }

  /// Heals what is open to the address, and isn't cut otherwise.
  private func healed(_ address: SocketAddress) {
    for connection in connections where connection.address == address && !isCut(connection) {
      connection.heal()
    }
    let isOpen = { [unowned self] (attempt: SimulatedConnect) in
      attempt.target == address && !isCut(from: attempt.loop, to: address)
    }
    let waiting = knocking.filter(isOpen)
    knocking.removeAll(where: isOpen)
    for attempt in waiting {
      let delay = scheduler.random.next(in: settings.conditions.retransmission)
      scheduler.schedule(after: delay) { [unowned self] in knock(attempt) }
    }
  }

  /// Ends a loop as if its process had been killed: the loop never runs again, and its listeners are closed. Its
  /// connections are closed as the system does it, with a reset if bytes are unread.
  public func crash(_ loop: SimulatedLoop) {
    scheduler.note("\(loop.name): crashes")
    loop.stop()
    // In the order of their names: a dictionary has none of its own.
    for listener in listeners.values.sorted(by: { $0.address.description < $1.address.description })
    where listener.loops[0] === loop {
      listener.close()
    }
    for connection in connections {
      for side in [connection.clientSide, connection.serverSide] where side.loop === loop {
        loop.asCurrent { side.crash() }
      }
    }
  }

  /// Plans the faults of a new connection.
  private func plan(for connection: SimulatedConnection) {
    planCut(of: connection)
    if let mean = settings.faults.resetEvery {
      scheduler.schedule(after: randomTime(around: mean)) { [weak connection] in connection?.reset() }
    }
  }

  private func planCut(of connection: SimulatedConnection) {
    guard let mean = settings.faults.cutEvery else { return }
    scheduler.schedule(after: randomTime(around: mean)) { [unowned self, weak connection] in
      guard let connection, !connection.isOver else { return }
      connection.cut()
      let length = scheduler.random.next(in: settings.faults.cutLength)
      scheduler.schedule(after: length) { [unowned self, weak connection] in
        guard let connection else { return }
        connection.heal()
        planCut(of: connection)
      }
    }
  }

  private func randomTime(around mean: Duration) -> Duration {
    scheduler.random.next(in: .nanoseconds(1)...mean * 2)
  }

  /// Lets go of everything.
  func tearDown() {
    for connection in connections {
      for side in [connection.clientSide, connection.serverSide] { side.loop.asCurrent { side.crash() } }
    }
    let dropped = (listeners, knocking, connections)
    (listeners, knocking, connections) = ([:], [], [])
    withExtendedLifetime(dropped) {}
  }
}

/// An address of a simulated network. Unchecked: see `SimulatedLoop`.
final class SimulatedListener: Listener, @unchecked Sendable {
  let address: SocketAddress
  let loops: [SimulatedLoop]
  let accepted: @Sendable (any ByteStream, any EventLoop) -> Void
  private weak var network: SimulatedNetwork?

  init(
    network: SimulatedNetwork, address: SocketAddress, loops: [SimulatedLoop],
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) {
    self.network = network
    self.address = address
    self.loops = loops
    self.accepted = accepted
  }

  func close() { network?.closed(self) }
}

/// A connection being opened in a simulated network. Unchecked: see `SimulatedLoop`.
final class SimulatedConnect: ConnectionAttempt, @unchecked Sendable {
  let loop: SimulatedLoop
  let target: SocketAddress
  private var completion: ((Result<any ByteStream, IOError>) -> Void)?
  /// Its result, from the decision until the completion gets it.
  var result: Result<SimulatedStream, IOError>?

  init(
    loop: SimulatedLoop, target: SocketAddress,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) {
    self.loop = loop
    self.target = target
    self.completion = completion
  }

  var isAbandoned: Bool { completion == nil }

  func abandon() {
    precondition(loop.isCurrent, "an attempt is abandoned on its loop")
    let dropped = completion
    completion = nil
    _ = consume dropped
    // The other side may have accepted it by now.
    if case .success(let stream) = result { stream.close() }
    result = nil
  }

  func answered() {
    loop.execute { self.finish() }
  }

  private func finish() {
    guard let completion, let result else { return }
    self.completion = nil
    self.result = nil
    completion(result.map { $0 })
  }
}
