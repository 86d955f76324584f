import SluiceIO
import SluiceNATS
import SluiceSimulation

/// One server of the model: a loop, a listener, and its clients' connections.
///
/// Unchecked: a world and its parts are used by one thread.
public final class EngineServerModel: @unchecked Sendable {
  public let name: String
  public let address: NATSAddress
  unowned let engine: EngineModel
  /// Its process; a new one after each start.
  public private(set) var loop: SimulatedLoop
  public private(set) var isRunning = true
  /// Whether it is paused.
  public private(set) var isPaused = false
  /// Whether it reaches its clients but no other server.
  private(set) var isIsolated = false
  /// How far its replicas lag behind the committed writes.
  public var lag: Duration = .zero
  private var listeners: [any Listener] = []
  /// Additional hosts, so that a test can cut one client from this server.
  private var aliases: [String] = []
  private var connections: [EngineConnection] = []
  /// The buffer for its connections' reads.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 16)

  init(_ name: String, at address: NATSAddress, of engine: EngineModel) {
    self.name = name
    self.address = address
    self.engine = engine
    loop = engine.world.makeLoop(name: name)
    listen()
  }

  deinit { buffer.deallocate() }

  /// Whether it runs and takes part.
  public var isAvailable: Bool { isRunning && !isPaused && !isIsolated }

  func isolate(_ isIsolated: Bool) { self.isIsolated = isIsolated }

  /// Whether messages reach the other server.
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

  /// A client has published a message. Called on the loop.
  func published(_ message: ModelMessage, by connection: EngineConnection) {
    // The reply is lost with the connection, whether the request was executed or not.
    if !message.reply.isEmpty, engine.isRequest(message.subject),
      engine.world.random.oneIn(engine.faults.resetOneIn)
    {
      if engine.world.random.oneIn(2) { engine.route(message, from: self) }
      engine.note("\(name): a request to \(message.subject) loses its connection")
      return connection.reset()
    }
    engine.route(message, from: self)
  }

  /// Delivers a message to this server's clients. Call it on the loop.
  func deliver(_ message: ModelMessage, to subject: String) {
    for connection in connections { connection.deliver(message, to: subject) }
  }
}
