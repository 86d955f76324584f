import SluiceBroker
import SluiceWire

@testable import SluiceClient

/// A broker on a loopback port, and a client of it.
final class LoopbackSetting: Sendable {
  let broker: Broker
  let address: String
  let client: Client

  init() async throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [.host("127.0.0.1", port: 0)]
    configuration.loops = 1
    // This process may be delayed for a while.
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    configuration.topicDefaults = TopicSettings(
      replayRecords: .max, replayBytes: .max, replayAge: .max)
    broker = try Broker(configuration)
    address = "\(try broker.start()[0])"
    client = try await Self.connect(to: address)
  }

  /// Connects another client.
  func connect(_ configure: (inout ClientOptions) -> Void = { _ in }) async throws -> Client {
    try await Self.connect(to: address, configure)
  }

  private static func connect(
    to address: String, _ configure: (inout ClientOptions) -> Void = { _ in }
  ) async throws -> Client {
    var options = ClientOptions()
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
    options.requestTimeout = .seconds(600)
    configure(&options)
    return try await Client.connect(to: address, options: options)
  }

  deinit {
    broker.stop()
  }

  func publish(_ count: Int, to topic: String) async throws {
    let subject = client.subject(topic)
    for number in 0..<count { try await subject.enqueue(Message("\(number)")) }
    try await subject.flush()
  }

  /// Breaks a client's connection; the client reconnects.
  static func breakOff(_ client: Client) {
    let core = client.core
    core.loop.execute {
      guard let connection = core.connection else { return }
      core.lost(connection, ClientError(.cutOff, "broken off by the test"))
    }
  }

  /// Waits until the broker has no subscriptions of a topic. Returns immediately if the client's connection has been up since they were cancelled.
  func none(on topic: String, _ client: Client) async throws {
    while try await !client.topicInfo(topic).subscriptions.isEmpty { await Task.yield() }
  }

  /// Waits until the loop has done all queued work, and the broker has read the resulting frames.
  func settle() async throws {
    _ = try await client.ping()
  }
}

extension ReconnectPolicy {
  /// A policy that reconnects immediately.
  static var quick: ReconnectPolicy {
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(1)
    policy.maximumDelay = .milliseconds(5)
    return policy
  }
}
