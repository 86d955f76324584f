import Glibc
import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceTLS
import TestSupport
import Testing

@testable import SluiceClient

/// A client of a broker with TLS, on sockets and on a simulated network.
@Suite struct TLSTests {
  private func serverNetwork(_ network: any Network, required: Bool = false) throws -> TLSNetwork {
    let certificates = try TestCertificates.shared()
    var options = TLSServerOptions(certificate: certificates.server, key: certificates.serverKey)
    options.clientAuthorities = certificates.authority
    if required { options.clientCertificates = .required }
    return TLSNetwork(over: network, server: try TLSServer(options))
  }

  private func options() throws -> ClientOptions {
    var options = ClientOptions()
    options.tls.authorities = try TestCertificates.shared().authority
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
    options.requestTimeout = .seconds(600)
    return options
  }

  private func broker(required: Bool = false) throws -> (Broker, address: String) {
    var configuration = BrokerConfiguration()
    configuration.listen = [.tls("127.0.0.1", port: 0)]
    configuration.loops = 1
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    let network = try serverNetwork(SocketNetwork(), required: required)
    let group = LoopGroup([try EpollLoop.start(name: "tls-broker")])
    let broker = try Broker(configuration, network: network, group: group)
    return (broker, "\(try broker.start()[0])")
  }

  @Test func aClientPublishesAndSubscribesOverTLS() async throws {
    let (broker, address) = try broker()
    defer { broker.stop() }
    let client = try await Client.connect(to: address, options: try options())
    let subject = client.subject("numbers")
    for number in 0..<1_000 { try await subject.enqueue(Message("\(number)")) }
    try await subject.complete()
    var received: [String] = []
    for try await record in client.topic("numbers").values { received.append(record.string) }
    #expect(received == (0..<1_000).map { "\($0)" })
    client.close()
  }

  @Test func aLostConnectionIsFollowedByAnotherOverTLS() async throws {
    let (broker, address) = try broker()
    defer { broker.stop() }
    var options = try options()
    options.reconnect = .quick
    let client = try await Client.connect(to: address, options: options)
    for round in 0..<3 {
      LoopbackSetting.breakOff(client)
      let subject = client.subject("rounds")
      try await subject.enqueue(Message("\(round)"))
      try await subject.flush()
    }
    var received: [String] = []
    for try await record in client.topic("rounds").values {
      received.append(record.string)
      if received.count == 3 { break }
    }
    #expect(received == ["0", "1", "2"])
    client.close()
  }

  @Test func whatIsWrongHasACodeOfItsOwn() async throws {
    let (broker, address) = try broker(required: true)
    defer { broker.stop() }
    func code(_ change: (inout ClientOptions) -> Void) async throws -> ClientError.Code? {
      var options = try options()
      change(&options)
      do {
        try await Client.connect(to: address, options: options).close()
        return nil
      } catch {
        return error.code
      }
    }
    let certificates = try TestCertificates.shared()
    #expect(try await code { _ in } == .certificateRefused)
    #expect(try await code { $0.tls.authorities = nil } == .certificateRefused)
    #expect(try await code { $0.tls.serverName = "other.example" } == .certificateRefused)
    #expect(try await code { $0.tls.authorities = "/nowhere" } == .tlsFailed)
    #expect(
      try await code {
        $0.tls.certificate = certificates.client
        $0.tls.key = certificates.clientKey
      } == nil)
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func aSimulatedClientComesBackThroughResets(seed: UInt64) throws {
    let world = SimulatedWorld(seed: seed, loops: 2)
    world.wallClock = 1_000 * Int64(time(nil))
    var configuration = BrokerConfiguration()
    configuration.listen = [.tls("localhost", port: 7420)]
    let broker = try Broker(
      configuration, network: try serverNetwork(world.network), group: LoopGroup([world.loops[0]]))
    let address = try broker.start()[0]
    var options = try options()
    options.reconnect = .quick
    options.seed = seed
    let clients = Shared<[Client]>([])
    Client.connect(to: address, options: options, network: world.network, loop: world.loops[1]) { result in
      if case .success(let client) = result { clients.update { $0.append(client) } }
    }
    #expect(world.run { !clients.value.isEmpty })
    let client = try #require(clients.value.first)
    let received = Shared<[String]>([])
    var subscription: AnyCancellable?
    var subject: TopicSubject?
    world.loops[1].perform {
      subject = client.subject("numbers")
      subscription = client.topic("numbers").sink { _ in
      } receiveValue: { record in
        received.update { $0.append(record.string) }
      }
    }
    for number in 0..<200 {
      _ = world.loops[1].perform { subject?.send(Message("\(number)")) }
      if number % 40 == 20 { world.network.connections.last?.reset() }
      world.run(for: .milliseconds(3))
    }
    #expect(world.run { received.value.count >= 200 })
    #expect(received.value == (0..<200).map { "\($0)" })
    withExtendedLifetime(subscription) {}
    world.loops[1].perform { client.close() }
    broker.stop()
    world.run(for: .seconds(5))
  }
}
