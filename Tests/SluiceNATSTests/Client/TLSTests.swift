import EngineTestSupport
import Glibc
import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceTLS
import TestSupport
import Testing

@Suite("A NATS client over TLS")
struct TLSTests {
  /// A scripted server with TLS, and a client of it.
  private struct Setting {
    let world: SimulatedWorld
    let server: ScriptedServer
    let client: NATSClient
    let events = Box()

    /// - Parameter greeting: the server's plain text before TLS; nil for TLS first.
    init(
      greeting: String?, seed: UInt64 = 1, _ change: (inout NATSOptions) -> Void = { _ in },
      client address: String = "tls://localhost:4222"
    ) throws {
      let world = SimulatedWorld(seed: seed, loops: 2)
      self.world = world
      world.wallClock = Int64(time(nil)) * 1_000
      let certificates = try TestCertificates.shared()
      let options = TLSServerOptions(certificate: certificates.server, key: certificates.serverKey)
      let beneath: any Network =
        greeting.map { GreetingNetwork(world.network, bytes($0)) } ?? world.network
      server = try ScriptedServer(
        "n1", world: world, loop: world.loops[1], at: "localhost",
        network: TLSNetwork(over: beneath, server: try TLSServer(options)), hasTLS: true)
      server.greets = greeting == nil
      server.script = { message, connection in connection.send(message.reply, payload: message.payload) }
      var clientOptions = NATSOptions()
      clientOptions.tls.authorities = certificates.authority
      clientOptions.handshakeFirst = greeting == nil
      clientOptions.seed = seed
      clientOptions.credentials = .fixed(.password(user: "u", password: "secret"))
      change(&clientOptions)
      client = try NATSClient(
        [NATSAddress(parsing: address)], options: clientOptions, network: world.network, on: world.loops[0])
      world.loops[0].perform { [client, events] in client.start { events.texts.append(text($0)) } }
    }

    func run(until condition: () -> Bool) -> Bool { world.run(limit: .seconds(60), until: condition) }

    func echo(_ count: Int) throws -> Int? {
      let box = Box()
      _ = try world.loops[0].perform {
        try client.request("echo", payload: [UInt8](repeating: 7, count: count)) { result in
          box.bytes = try? result.get().payload.array
        }
      }
      _ = run { box.bytes != nil }
      return box.bytes?.count
    }
  }

  private static let info =
    #"INFO {"server_name":"n1","version":"2.15.1","headers":true,"max_payload":100000,"tls_required":true}"#
    + "\r\n"

  @Test("TLS comes behind INFO, or first", arguments: [info, nil] as [String?])
  func both(greeting: String?) throws {
    for seed in 0..<5 as Range<UInt64> {
      let setting = try Setting(greeting: greeting, seed: seed)
      #expect(setting.run { setting.client.isConnected }, "\(setting.events.texts)")
      #expect(try setting.echo(50_000) == 50_000)
      #expect(setting.server.connections.last?.connect?.contains("secret") == true)
      // Again after a loss.
      setting.world.loops[1].perform { setting.server.connections.last?.reset() }
      #expect(setting.run { setting.events.texts.count == 3 })
      #expect(try setting.echo(10) == 10)
    }
  }

  @Test("a server that asks for TLS gets it, whatever the address says")
  func asked() throws {
    let setting = try Setting(greeting: Self.info, client: "nats://localhost:4222")
    #expect(setting.run { setting.client.isConnected }, "\(setting.events.texts)")
  }

  @Test("a server with a certificate of another authority isn't told anything")
  func strangers() throws {
    for greeting in [Self.info, nil] {
      let others = try TestCertificates()
      let setting = try Setting(greeting: greeting, { $0.tls.authorities = others.authority })
      #expect(setting.run { !setting.events.texts.isEmpty })
      #expect(setting.events.texts.first == "interrupted: certificate-refused")
      #expect(!setting.server.connections.contains { $0.connect != nil })
    }
  }

  @Test("what is slipped in behind INFO isn't taken for the server's over TLS")
  func injection() throws {
    let setting = try Setting(greeting: Self.info + "PONG\r\n")
    #expect(setting.run { !setting.events.texts.isEmpty })
    #expect(setting.events.texts.first == "interrupted: protocol-violation")
    #expect(!setting.server.connections.contains { $0.connect != nil })
  }

  @Test("files that can't be used are named at once")
  func files() {
    var options = NATSOptions()
    options.tls.authorities = "/nowhere/authority.pem"
    let world = SimulatedWorld(seed: 1)
    let error = #expect(throws: NATSError.self) {
      try NATSClient([NATSAddress("a")], options: options, network: world.network, on: world.loops[0])
    }
    #expect(error?.code == .tlsFailed)
    #expect(error?.description.contains("/nowhere/authority.pem") == true)
  }
}

/// A network whose listeners first send some bytes: a server's plain text before TLS.
private final class GreetingNetwork: Network {
  private let beneath: any Network
  private let greeting: [UInt8]

  init(_ beneath: any Network, _ greeting: [UInt8]) {
    self.beneath = beneath
    self.greeting = greeting
  }

  func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    let greeting = greeting
    return try beneath.listen(at: address, group: group) { stream, loop in
      var rest = greeting[...]
      while !rest.isEmpty {
        let result = rest.withUnsafeBytes { bytes -> WriteResult in
          var vector = iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
          return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
        }
        guard case .wrote(let count) = result else { break }
        rest = rest.dropFirst(count)
      }
      accepted(stream, loop)
    }
  }

  func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    beneath.connect(to: address, on: loop, completion: completion)
  }
}
