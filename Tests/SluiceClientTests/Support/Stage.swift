import SluiceBroker
import SluiceIO
import Testing

@testable import SluiceClient
@testable import SluiceSimulation

/// A broker and clients on one thread and a simulated network, each on its own loop.
final class Stage {
  let world: SimulatedWorld
  private(set) var broker: Broker
  let address = SocketAddress.host("broker", port: 7420)
  private(set) var brokerLoop: SimulatedLoop
  private var configuration: BrokerConfiguration

  init(
    seed: UInt64 = 1, conditions: SimulatedConditions = .calm,
    _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    brokerLoop = world.makeLoop(name: "broker")
    var configuration = BrokerConfiguration()
    configuration.listen = [address]
    configure(&configuration)
    self.configuration = configuration
    broker = try Broker(configuration, network: world.network, group: LoopGroup([brokerLoop]))
    try broker.start()
  }

  /// Kills the broker's process; the contents of its memory are lost.
  func crash() {
    world.network.crash(brokerLoop)
  }

  /// Starts another broker at the same address, without any state.
  func restart() throws {
    brokerLoop = world.makeLoop(name: "broker'")
    broker = try Broker(configuration, network: world.network, group: LoopGroup([brokerLoop]))
    try broker.start()
  }

  /// A client that reconnects when it loses its connection.
  func persistentClient(
    _ name: String = "test", _ configure: (inout ClientOptions) -> Void = { _ in }
  ) throws -> Client {
    try client(name) {
      $0.reconnect = ReconnectPolicy()
      $0.seed = 1
      configure(&$0)
    }
  }

  /// Resets the oldest open connection.
  func reset() {
    world.network.connections.first { !$0.isOver }?.reset()
  }

  /// The newest connection of a loop.
  func latestConnection(of loop: SimulatedLoop) -> SimulatedConnection? {
    world.network.connections.last { $0.clientSide.loop === loop }
  }

  /// A client on its own loop.
  func client(_ name: String = "test", _ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client
  {
    let loop = world.makeLoop(name: name)
    var options = ClientOptions()
    options.name = name
    options.reconnect = nil
    configure(&options)
    return try wait {
      Client.connect(to: address, options: options, network: world.network, loop: loop, completion: $0)
    }
  }

  /// Starts an operation, and runs the world until its completion is called.
  func wait<Value: Sendable>(
    _ start: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) throws -> Value {
    let box = Box<Result<Value, ClientError>?>(nil)
    start { box.value = $0 }
    guard world.run(until: { box.value != nil }), let result = box.value else { throw StageError.noAnswer }
    return try result.get()
  }

  /// The error of a failing operation.
  func failure<Value: Sendable>(
    _ start: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) throws -> ClientError? {
    do {
      _ = try wait(start)
      return nil
    } catch let error as ClientError {
      return error
    }
  }

  func publish(_ messages: [Message], to topic: String, with client: Client) throws {
    let subject = client.subject(topic)
    for message in messages { subject.send(message) }
    try wait(subject.flush(completion:))
  }

  /// The number of subscriptions to a topic; nil if the broker has no such topic.
  func subscriptions(_ topic: String, _ client: Client) throws -> Int? {
    try? Int(wait { client.topicInfo(topic, completion: $0) }.summary.subscriptions)
  }
}

enum StageError: Error {
  case noAnswer
}
