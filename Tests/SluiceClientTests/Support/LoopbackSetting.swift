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
    // This process may be held up for a while.
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    configuration.topicDefaults = TopicSettings(
      replayRecords: .max, replayBytes: .max, replayAge: .max)
    broker = try Broker(configuration)
    address = "\(try broker.start()[0])"
    client = try await Self.connect(to: address)
  }

  /// Another client of it.
  func connect() async throws -> Client { try await Self.connect(to: address) }

  private static func connect(to address: String) async throws -> Client {
    var options = ClientOptions()
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
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

  /// Everything that was noted for the loop before has been done, and the broker has read what came of it.
  func settle() async throws {
    _ = try await client.ping()
  }
}
