import SluiceIO
import SluiceNATS
import SluiceSimulation

/// One server of the model: a loop, a listener, and its clients' connections.
///
/// Unchecked: a world and all that belongs to it is used by one thread.
public final class EngineServerModel: @unchecked Sendable {
  public let name: String
  public let address: NATSAddress
  unowned let engine: EngineModel
  /// Its process; another one after each start.
  public private(set) var loop: SimulatedLoop
  public private(set) var isRunning = true
  /// Doesn't get the processor.
  public private(set) var isPaused = false
  /// Reaches its clients, and no other server.
  private(set) var isIsolated = false
  /// How far its replicas are behind what is committed.
  public var lag: Duration = .zero
  private var listeners: [any Listener] = []
  /// Other hosts at which it can be reached, so that a test can cut the way from one client.
  private var aliases: [String] = []
  private var connections: [EngineConnection] = []
  /// What its connections read into.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 16)

  init(_ name: String, at address: NATSAddress, of engine: EngineModel) {
    self.name = name
    self.address = address
    self.engine = engine
    loop = engine.world.makeLoop(name: name)
    listen()
  }

  deinit { buffer.deallocate() }

  /// Runs, and takes part.
  public var isAvailable: Bool { isRunning && !isPaused && !isIsolated }

  func isolate(_ isIsolated: Bool) { self.isIsolated = isIsolated }

  /// Whether messages get from one server to the other.
  func reaches(_ other: EngineServerModel) -> Bool { self === other || !isIsolated && !other.isIsolated }

  var info: String {
    let urls = engine.servers.map { "\"\($0.address.host):\($0.address.port)\"" }.joined(separator: ",")
    return
      #"INFO {"server_id":"\#(name)","server_name":"\#(name)","version":"\#(engine.version)","headers":true,"#
      + #""max_payload":\#(engine.maximumPayload),"jetstream":true,"connect_urls":[\#(urls)]}"# + "\r\n"
  }

  private func listen() {
    listeners = ([address.host] + aliases).compactMap { listener(at: $0) }
  }

  private func listener(at host: String) -> (any Listener)? {
    try? engine.world.network.listen(at: .host(host, port: address.port), group: LoopGroup([loop])) {
      [weak self] stream, _ in self?.accept(stream)
    }
  }

  func addAlias(_ host: String) {
    aliases.append(host)
    if isRunning, let listener = listener(at: host) { listeners.append(listener) }
  }

  private func accept(_ stream: any ByteStream) {
    let connection = EngineConnection(stream, of: self)
    connections.append(connection)
    connection.start()
  }

  func ended(_ connection: EngineConnection) { connections.removeAll { $0 === connection } }

  // MARK: Faults

  func crash() {
    isRunning = false
    isPaused = false
    listeners = []
    connections = []
    engine.world.network.crash(loop)
  }

  func restart() {
    loop = engine.world.makeLoop(name: name)
    isRunning = true
    listen()
  }

  func pause() {
    isPaused = true
    loop.stall()
  }

  func resume() {
    isPaused = false
    loop.resume()
  }

  /// Resets every client's connection.
  public func resetConnections() {
    loop.perform { for connection in connections { connection.reset() } }
  }

  // MARK: Messages

  func hasInterest(in subject: String) -> Bool {
    isRunning && connections.contains { $0.hasInterest(in: subject) }
  }

  /// A client has published something. On the loop.
  func published(_ message: ModelMessage, by connection: EngineConnection) {
    // An answer that gets lost with the connection, whether the request was carried out or not.
    if !message.reply.isEmpty, engine.isRequest(message.subject),
      engine.world.random.oneIn(engine.faults.resetOneIn)
    {
      if engine.world.random.oneIn(2) { engine.route(message, from: self) }
      engine.note("\(name): a request to \(message.subject) loses its connection")
      return connection.reset()
    }
    engine.route(message, from: self)
  }

  /// Hands a message to this server's clients. On the loop.
  func deliver(_ message: ModelMessage, to subject: String) {
    for connection in connections { connection.deliver(message, to: subject) }
  }
}
