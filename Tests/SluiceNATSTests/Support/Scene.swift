import EngineTestSupport
import SluiceIO
import SluiceSimulation
import TestSupport

@testable import SluiceNATS

/// Scripted servers and a client in a simulated world: the client on the first loop, each server on its own.
///
/// Unchecked: a world and its parts are used by one thread.
final class Scene: @unchecked Sendable {
  let world: SimulatedWorld
  private(set) var servers: [ScriptedServer] = []
  private(set) var client: NATSClient!
  /// The client's events, as text.
  private(set) var events: [String] = []

  init(
    seed: UInt64 = 1, servers count: Int = 1, conditions: SimulatedConditions = .calm,
    _ change: (inout NATSOptions) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: 1, conditions: conditions)
    for number in 1...count {
      servers.append(
        try ScriptedServer(
          "n\(number)", world: world, loop: world.makeLoop(name: "n\(number)"), at: "10.0.0.\(number)"))
    }
    var options = NATSOptions()
    options.seed = seed
    change(&options)
    client = try NATSClient(servers.map(\.address), options: options, network: world.network, on: loop)
  }

  var loop: SimulatedLoop { world.loops[0] }
  var server: ScriptedServer { servers[0] }

  /// Runs `body` on the client's loop.
  @discardableResult
  func perform<Result>(_ body: (NATSClient) throws -> Result) rethrows -> Result {
    try loop.perform { try body(client) }
  }

  func start() {
    perform { client in
      client.start { [weak self] event in self?.events.append(text(event)) }
    }
  }

  /// Starts the client, and waits until it is connected.
  func open() throws {
    start()
    try require(world.run { self.client.isConnected }, "no connection: \(events)")
  }

  /// Sends a request, and waits for its outcome.
  func request(_ subject: String, _ payload: String = "") throws -> String {
    let outcome = Outcome()
    perform { client in outcome.of { try client.request(subject, payload: bytes(payload), $0) } }
    try require(world.run { outcome.text != nil }, "no outcome of a request to \(subject)")
    return outcome.text ?? ""
  }

  /// The server to which the client is connected.
  var connected: ScriptedServer? {
    servers.first { server in server.connections.contains { !$0.isOver && $0.connect != nil } }
  }
}

/// The outcome of a request, as text: the payload, or the error's code.
///
/// Unchecked: used by one thread.
final class Outcome: @unchecked Sendable {
  private(set) var all: [String] = []
  private(set) var error: NATSError?
  var text: String? { all.first }

  func of(_ begin: (@escaping NATSClient.Completion) throws -> Void) {
    do {
      try begin { [self] result in set(result.map { $0.payload.text }) }
    } catch {
      set(.failure(error as! NATSError))
    }
  }

  func set(_ result: Result<String, NATSError>) {
    switch result {
    case .success(let text): all.append(text)
    case .failure(let error):
      self.error = error
      all.append("\(error.code)")
    }
  }
}
