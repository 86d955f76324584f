import Glibc
import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Which redirects to nodes a client follows, and which credentials it sends there.
@Suite struct DirectSecurityTests {
  private static let secret = "open-sesame"

  private let world: SimulatedWorld
  private let clientLoop: SimulatedLoop

  init() {
    world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
    // Certificates must be valid at the simulated time.
    world.wallClock = 1_000 * Int64(time(nil))
    clientLoop = world.makeLoop(name: "client")
  }

  private func broker(at address: SocketAddress) throws -> ScriptedBroker {
    var network: any Network = world.network
    if address.hasTLS {
      let certificates = try TestCertificates.shared()
      let options = TLSServerOptions(certificate: certificates.server, key: certificates.serverKey)
      network = TLSNetwork(over: world.network, server: try TLSServer(options))
    }
    return try ScriptedBroker(
      .test(features: Feature.redirects), at: address, in: world, clientLoop: clientLoop, on: network)
  }

  private func client(of broker: ScriptedBroker, serverName: String? = nil) throws -> Client {
    let authority = try TestCertificates.shared().authority
    return try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.credentials = .password(Self.secret, user: "alice")
      $0.tls.authorities = authority
      $0.tls.serverName = serverName
      $0.keepalive = .zero
    }
  }

  /// Makes the broker redirect a subscription each time that the client requests it. Returns the flags of the client's last request; nil if it doesn't
  /// return.
  private func redirect(_ client: Client, of home: ScriptedBroker, to address: String) throws -> UInt8? {
    client.topic("a").subscribe(Recorder<TopicRecord>())
    #expect(world.run(limit: .seconds(10)) { !home.received.isEmpty })
    var asked = home.takeReceived().first
    for _ in 0..<20 {
      home.send(Redirect(node: "b", address: address), try #require(asked).stream)
      _ = world.run(limit: .seconds(10)) { !home.received.isEmpty }
      asked = home.takeReceived().first
      if asked?.flags != 0 { break }
    }
    return asked?.flags
  }

  @Test func aNodeIsReachedWithTheSecurityOfTheBroker() throws {
    let home = try broker(at: .tls("localhost", port: 7420))
    let node = try broker(at: .tls("localhost", port: 7421))
    #expect(try redirect(try client(of: home), of: home, to: "localhost:7421") == nil)
    #expect(node.received.map(\.type) == [.subscribe])
    #expect(node.hello?.credentials == .password(Self.secret, user: "alice"))
  }

  /// A node, or a program in its place, listens without TLS although the broker uses TLS.
  @Test func credentialsAreNotSentWithoutTLSWhereTheBrokerHasIt() throws {
    let home = try broker(at: .tls("localhost", port: 7420))
    let listener = ByteCollector()
    _ = try world.network.listen(
      at: .host("localhost", port: 7421), group: LoopGroup([world.makeLoop(name: "node")])
    ) { stream, _ in listener.take(stream) }
    #expect(try redirect(try client(of: home), of: home, to: "localhost:7421") == StreamFlag.relay)
    // Only a TLS handshake was sent.
    #expect(listener.bytes.first == 0x16)
    let text = String(decoding: listener.bytes, as: UTF8.self)
    #expect(!text.contains(Self.secret) && !text.contains("SLCE"))
  }

  @Test func aNodeHasACertificateForItsOwnHost() throws {
    let home = try broker(at: .tls("localhost", port: 7420))
    let node = try broker(at: .tls("other", port: 7420))
    #expect(try redirect(try client(of: home), of: home, to: "other:7420") == StreamFlag.relay)
    #expect(node.hello == nil)
  }

  /// The name that the program expects in the broker's certificate doesn't apply to a node.
  @Test func theExpectedNameIsThatOfTheBroker() throws {
    let home = try broker(at: .tls("home", port: 7420))
    let node = try broker(at: .tls("other", port: 7420))
    let same = try broker(at: .tls("localhost", port: 7420))
    let client = try client(of: home, serverName: "localhost")
    #expect(try redirect(client, of: home, to: "other:7420") == StreamFlag.relay)
    #expect(node.hello == nil)
    #expect(try redirect(client, of: home, to: "localhost:7420") == nil)
    #expect(same.hello != nil)
  }

  /// A client of a broker on the same machine sends nothing unencrypted to the network.
  @Test(arguments: [SocketAddress.host("localhost", port: 7420), .unix("/run/sluice")])
  func whatDoesNotLeaveTheMachineIsNotSentToTheNetwork(address: SocketAddress) throws {
    let home = try broker(at: address)
    let node = try broker(at: .host("node", port: 7420))
    let near = try broker(at: .host("127.0.0.1", port: 7421))
    let client = try client(of: home)
    #expect(try redirect(client, of: home, to: "node:7420") == StreamFlag.relay)
    #expect(node.accepted == 0)
    #expect(try redirect(client, of: home, to: "127.0.0.1:7421") == nil)
    #expect(near.received.map(\.type) == [.subscribe])
  }
}

/// Collects received bytes, and sends nothing.
private final class ByteCollector: ByteStreamHandler, @unchecked Sendable {
  private(set) var bytes: [UInt8] = []
  private var stream: (any ByteStream)?

  func take(_ stream: any ByteStream) {
    self.stream = stream
    stream.start(self)
  }

  func streamReadable() {
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 16) { buffer in
      switch stream!.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: stream?.close()
      case .bytes(let count): bytes += buffer[..<count]
      }
    }
  }

  func streamWritable() {}
  func streamFailed(_ error: IOError) {}
}
