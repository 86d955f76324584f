import EngineTestSupport
import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import TestSupport

/// A client of real servers or of the model, for a test that waits for each step.
protocol SteppedClient {
  /// Runs `body` on the client's loop, and waits for its result.
  func result<Value: Sendable>(
    _ body: @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Result<Value, NATSError>
}

extension RealClient: SteppedClient {}

/// A client of the model of the engine. Unchecked: a world and its parts are used by one thread.
final class ModelClient: SteppedClient, @unchecked Sendable {
  let world: SimulatedWorld
  let engine: EngineModel
  let client: NATSClient
  private let loop: SimulatedLoop

  init(seed: UInt64 = 1, servers: Int = 3, conditions: SimulatedConditions = .calm) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    engine = EngineModel(in: world, servers: servers)
    loop = world.makeLoop(name: "client")
    var options = NATSOptions()
    options.seed = seed
    client = try NATSClient(engine.addresses, options: options, network: world.network, on: loop)
    let client = client
    loop.perform { client.start { _ in } }
    try require(world.run { client.isConnected }, "no connection to the model")
  }

  func perform<Result>(_ body: (JetStream) throws -> Result) rethrows -> Result {
    try loop.perform { try body(JetStream(client)) }
  }

  func result<Value: Sendable>(
    _ body: @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Result<Value, NATSError> {
    let holder = Holder<Value>()
    loop.perform {
      do {
        try body(JetStream(client)) { holder.result = $0 }
      } catch {
        holder.result = .failure(error as! NATSError)
      }
    }
    try require(world.run { holder.result != nil }, "no outcome in the model")
    return holder.result!
  }
}

private final class Holder<Value> {
  var result: Result<Value, NATSError>?
}
