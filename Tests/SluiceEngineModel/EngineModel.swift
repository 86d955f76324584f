import SluiceIO
import SluiceNATS
import SluiceSimulation

/// Random faults of the model; none by default.
public struct EngineFaults: Sendable {
  /// One in this many requests loses its connection, half of them after execution; 0: none. The same applies to the others.
  public var resetOneIn = 0
  /// One in this many requests to a stream or the API gets no reply and isn't executed.
  public var silentOneIn = 0
  /// One in this many writes is rejected with 503, as without a leader.
  public var refusedOneIn = 0
  /// How long a stream that has lost its leader has none.
  public var election: ClosedRange<Duration> = .seconds(1) ... .seconds(6)
  /// How long a write takes until most replicas have it.
  public var commit: ClosedRange<Duration> = .microseconds(100) ... .milliseconds(3)
  /// While a server is isolated, one in this many reads goes to its replicas, on which the other servers still count, and gets no reply; 0: none.
  public var isolatedReadOneIn = 3
  /// How long the leader's reply to a read is delayed after the read.
  public var answer: ClosedRange<Duration> = .zero ... .milliseconds(5)

  public init() {}
}

/// A model of the engine, `nats-server` with JetStream, in a simulated world. Clients reach its servers over the simulated network with the NATS
/// protocol, and the servers replicate streams.
///
/// It covers the part of the engine that ``SluiceNATS`` uses. All servers replicate each stream. Its leader checks expectations against its contents
/// and the writes in progress. Writes in progress are committed later if most servers run; some may be lost with the leader. The other servers have
/// the committed writes, with a lag. Streams and committed writes outlive crashes, as with `sync_interval: always`.
///
/// Unchecked: a world and its parts are used by one thread.
public final class EngineModel: @unchecked Sendable {
  public let world: SimulatedWorld
  public private(set) var servers: [EngineServerModel] = []
  public var faults = EngineFaults()
  public var version = "2.15.1"
  public var maximumPayload = 1 << 20
  /// Whether the servers report `sync_interval: always`.
  public var syncsAlways = true
  /// Whether a client may request the servers' settings.
  public var tellsSettings = true
  /// Whether no server has room for more.
  public var isFull = false
  /// The error of the servers' wall clocks.
  public var clockOffset = Duration.zero
  /// Called with each committed message and its stream's name.
  public var committed: (String, StreamContents.Message) -> Void = { _, _ in }

  /// The number of reads sent to replicas of isolated servers.
  public internal(set) var lostReads = 0

  var streams: [String: EngineStream] = [:] { didSet { routesChanged() } }
  /// Cached streams by subject, until streams or their subjects change.
  private var routes: [String: EngineStream?] = [:]
  /// Runs elections. It never stalls.
  let control: SimulatedLoop

  /// - Parameters:
  ///   - world: its world; each server has its own loop.
  ///   - count: the number of servers.
  ///   - host: the address of the servers' hosts without the last number.
  public init(in world: SimulatedWorld, servers count: Int = 3, host: String = "10.1.0") {
    self.world = world
    control = world.makeLoop(name: "engine")
    for number in 1...count {
      servers.append(EngineServerModel("n\(number)", at: NATSAddress("\(host).\(number)"), of: self))
    }
  }

  public var addresses: [NATSAddress] { servers.map(\.address) }

  /// Creates additional addresses of all servers, so that a test can cut one client from one server.
  ///
  /// - Parameter host: the addresses without the last number, which is the server's.
  public func makeAliases(_ host: String) -> [NATSAddress] {
    servers.enumerated().map { index, server in
      let own = "\(host).\(index + 1)"
      server.addAlias(own)
      return NATSAddress(own, port: server.address.port)
    }
  }

  /// The contents that most replicas of a stream have; nil without the stream.
  public func contents(of stream: String) -> StreamContents? { streams[stream]?.committed }

  /// The index of the server that leads a stream; nil if there is none.
  public func leader(of stream: String) -> Int? {
    streams[stream]?.leader.flatMap { leader in servers.firstIndex { $0 === leader } }
  }

  public var streamNames: [String] { streams.keys.sorted() }

  var wallClock: Int64 { world.wallClock * 1_000_000 + clockOffset.clampedNanoseconds }

  /// Whether most servers run and answer.
  var hasQuorum: Bool { servers.count(where: \.isAvailable) * 2 > servers.count }

  func note(_ text: @autoclosure () -> String) { world.trace?("engine: \(text())") }

  // MARK: Faults

  /// Kills a server: its connections end, and its streams' writes in progress may be lost.
  public func crash(_ index: Int) {
    guard servers[index].isRunning else { return }
    servers[index].crash()
    availabilityChanged()
  }

  /// Restarts a server.
  public func restart(_ index: Int) {
    guard !servers[index].isRunning else { return }
    servers[index].restart()
    availabilityChanged()
  }

  /// Pauses a server until ``resume(_:)``.
  public func pause(_ index: Int) {
    guard servers[index].isAvailable else { return }
    servers[index].pause()
    availabilityChanged()
  }

  public func resume(_ index: Int) {
    guard servers[index].isPaused else { return }
    servers[index].resume()
    availabilityChanged()
  }

  /// Isolates a server from the other servers, but not from its clients, until ``heal()``.
  public func isolate(_ index: Int) {
    servers[index].isolate(true)
    availabilityChanged()
  }

  /// Makes a stream's leader step down; another server is elected.
  public func stepDown(_ stream: String) { streams[stream]?.loseLeader() }

  /// Ends all faults.
  public func heal() {
    faults = EngineFaults()
    isFull = false
    for index in servers.indices {
      servers[index].lag = .zero
      if servers[index].isIsolated {
        servers[index].isolate(false)
        availabilityChanged()
      }
      if servers[index].isRunning { resume(index) } else { restart(index) }
    }
  }

  private func availabilityChanged() {
    for name in streams.keys.sorted() { streams[name]?.availabilityChanged() }
  }

  // MARK: Routing

  func isRequest(_ subject: String) -> Bool {
    subject.hasPrefix("$JS.API.") || stream(for: subject) != nil
  }

  func stream(for subject: String) -> EngineStream? {
    if let known = routes[subject] { return known }
    var found: EngineStream?
    for name in streams.keys.sorted() where found == nil {
      if let stream = streams[name], stream.subjects.contains(where: { NATSSubject.matches(subject, $0) }) {
        found = stream
      }
    }
    // Every inbox is new, so limit the cache.
    if routes.count > 1_000 { routes = [:] }
    routes[subject] = .some(found)
    return found
  }

  /// Streams or the subjects of one have changed.
  func routesChanged() { routes = [:] }

  /// Delivers a message to its subscribers, streams and services. Call it on the loop of `server`.
  func route(_ message: ModelMessage, from server: EngineServerModel) {
    var isTaken = deliver(message, to: message.subject, from: server)
    // The server has the list of streams, but reaches no leader.
    if server.isIsolated, message.subject.hasPrefix("$JS.") || isRequest(message.subject) { return }
    if message.subject.hasPrefix("$JS.API.") {
      isTaken = serve(message, from: server) || isTaken
    } else if message.subject.hasPrefix("$JS.FC.") {
      flowControlAnswered(message.subject)
      isTaken = true
    } else if message.subject == JetStream.serversSubject, tellsSettings {
      tellSettings(message)
      isTaken = true
    } else if let stream = stream(for: message.subject) {
      isTaken = stream.take(message) || isTaken
    }
    if !isTaken { answer(message, ModelMessage("", status: "503"), from: server) }
  }

  /// Delivers a message to the clients of all servers that have subscribed to `subject`.
  ///
  /// - Returns: whether there are any.
  @discardableResult
  func deliver(_ message: ModelMessage, to subject: String, from server: EngineServerModel) -> Bool {
    var isTaken = false
    for other in servers where other.hasInterest(in: subject) && server.reaches(other) {
      isTaken = true
      let job = Job { [weak other] in other?.deliver(message, to: subject) }
      // The loop may be running another server's turn.
      if other === server, server.loop.isCurrent { job.run() } else { other.loop.execute { job.run() } }
    }
    return isTaken
  }

  /// Unchecked: a world is used by one thread.
  private struct Job: @unchecked Sendable {
    let run: () -> Void
  }

  /// Sends the reply to a request, if one is expected.
  func answer(_ request: ModelMessage, _ answer: ModelMessage, from server: EngineServerModel) {
    guard !request.reply.isEmpty else { return }
    var answer = answer
    answer.subject = request.reply
    deliver(answer, to: request.reply, from: server)
  }

  func answer(_ request: ModelMessage, _ json: String, from server: EngineServerModel) {
    answer(request, ModelMessage("", payload: Array(json.utf8)), from: server)
  }

  private func tellSettings(_ request: ModelMessage) {
    for server in servers where server.isRunning {
      let json =
        #"{"server":{"name":"\#(server.name)","ver":"\#(version)","jetstream":true},"#
        + #""data":{"config":{"sync_interval":120000000000,"sync_always":\#(syncsAlways)}}}"#
      run(on: server) { [self] in answer(request, json, from: server) }
    }
  }

  /// Runs `body` on the loop of a server, once it isn't paused.
  func run(on server: EngineServerModel, _ body: @escaping () -> Void) {
    let job = Job(run: body)
    server.loop.execute { job.run() }
  }

  /// Runs `body` on the loop of a server after a delay.
  func run(on server: EngineServerModel, after delay: Duration, _ body: @escaping () -> Void) {
    run(on: server) { _ = server.loop.schedule(after: delay, body) }
  }

  func runOnControl(after delay: Duration, _ body: @escaping () -> Void) {
    let job = Job(run: body)
    control.execute { [control] in _ = control.schedule(after: delay) { job.run() } }
  }
}
