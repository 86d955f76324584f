import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// Which credentials a client sends, and when.
@Suite struct CredentialsTests {
  private static let token = Credentials.token("abc")

  /// A broker with a handshake controlled by the test, and the result of connecting to it.
  private struct Door {
    let broker: ScriptedBroker
    let result = Box<Result<Client, ClientError>?>(nil)

    init(_ configure: (inout ClientOptions) -> Void) throws {
      broker = try ScriptedBroker(nil)
      var options = ClientOptions()
      options.seed = 1
      options.keepalive = .zero
      options.connectTimeout = .seconds(5)
      options.allowsPlaintextCredentials = true
      configure(&options)
      Client.connect(
        to: broker.address, options: options, network: broker.world.network, loop: broker.clientLoop
      ) { [result] in result.value = $0 }
    }

    /// The credentials in HELLO, once it arrives.
    func credentials() throws -> Credentials {
      let came = broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty }
      try #require(came)
      return try broker.takeOnly(Hello.self).credentials
    }

    func welcome(_ name: String = "ada", for time: Int64? = nil) {
      let expires = time.map { UInt64(broker.world.wallClock + $0) } ?? Authenticated.never
      broker.send(
        Welcome(
          maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 100, keepalive: 0, broker: 1,
          software: "",
          identity: name, expires: expires), 0)
      broker.settle()
    }

    func refuse(_ code: ErrorCode) {
      broker.send(Fault(code: code, message: "no"), 0)
      broker.close()
      broker.settle()
    }

    func client() throws -> Client { try #require(result.value).get() }
    var failure: ClientError.Code? {
      if case .failure(let error)? = result.value { error.code } else { nil }
    }
  }

  // MARK: The handshake

  @Test func helloSaysWhoOneIs() throws {
    for (given, said) in [
      (ClientCredentials.none, Credentials.none), (.password("p", user: "ada"), .password("p", user: "ada")),
      (.token("abc"), Self.token),
    ] {
      let door = try Door { $0.credentials = given }
      #expect(try door.credentials() == said)
      door.welcome(for: 60_000)
      let identity = try door.client().identity
      #expect(identity?.name == "ada" && identity?.expires != nil)
    }
  }

  @Test func whereNobodyAsksThereIsNoIdentity() throws {
    let door = try Door { _ in }
    _ = try door.credentials()
    door.welcome("")
    #expect(try door.client().identity == nil)
  }

  @Test func secretsArentPrinted() {
    for credentials in [
      ClientCredentials.password("s3cret", user: "ada"), .token("s3cret"), .provider { .token("s3cret") },
    ] {
      var options = ClientOptions()
      options.credentials = credentials
      var text = "\(credentials) \(String(reflecting: credentials)) \(options)"
      dump(options, to: &text)
      #expect(!text.contains("s3cret"))
    }
  }

  @Test func whoIsRefusedAtFirstIsToldAtOnce() throws {
    for code in [ErrorCode.authenticationRequired, .authenticationFailed, .credentialsExpired] {
      let door = try Door {
        $0.credentials = .token("abc")
        $0.reconnect?.includesFirst = true
      }
      _ = try door.credentials()
      door.refuse(code)
      #expect(door.failure == ClientError.Code(code))
      #expect(door.failure?.description == code.description)
    }
  }

  @Test func whoIsTooManyTriesAgain() throws {
    let door = try Door { $0.reconnect?.includesFirst = true }
    for _ in 0..<5 {
      _ = try door.credentials()
      door.refuse(.tooManyAttempts)
      #expect(door.result.value == nil)
    }
    _ = try door.credentials()
    door.welcome()
    _ = try door.client()
  }

  @Test func afterALossTheClientIsntRefusedForEver() throws {
    let door = try Door {
      $0.credentials = .token("abc")
      $0.reconnect?.refusals = 3
    }
    _ = try door.credentials()
    door.welcome()
    let client = try door.client()
    for _ in 0..<2 {
      // Denied twice, accepted, denied twice: each time the count starts again.
      door.broker.world.network.connections.last?.reset()
      for _ in 0..<2 {
        #expect(try door.credentials() == Self.token)
        door.refuse(.authenticationFailed)
        #expect(client.failure == nil)
      }
      _ = try door.credentials()
      door.welcome()
    }
    door.refuse(.accessRevoked)
    for _ in 0..<3 {
      #expect(client.failure == nil)
      _ = try door.credentials()
      door.refuse(.authenticationFailed)
    }
    #expect(client.failure?.code == .authenticationFailed)
    door.broker.world.run(for: .seconds(60))
    #expect(door.broker.received.isEmpty)
  }

  // MARK: Unencrypted connections

  @Test(arguments: [
    ("127.0.0.1:1", false), ("127.9.9.9:1", false), ("[::1]:1", false), ("localhost:1", false),
    ("[::ffff:127.0.0.1]:1", false), ("unix:/tmp/s", false), ("tls://example.org:1", false),
    ("10.0.0.1:1", true),
    ("0.0.0.0:1", true), ("[::]:1", true), ("127.evil.org:1", true), ("example.org:1", true),
    ("[fe80::1]:1", true),
    ("[::ffff:10.0.0.1]:1", true), ("localhost.example.org:1", true),
  ])
  func whatLeavesTheMachineMayBeRead(address: String, isRead: Bool) throws {
    #expect(try SocketAddress(parsing: address).isUnencrypted == isRead)
  }

  @Test func secretsArentSentInTheOpen() throws {
    for credentials in [ClientCredentials.token("abc"), .password("p", user: "ada")] {
      let door = try Door {
        $0.credentials = credentials
        $0.allowsPlaintextCredentials = false
        $0.reconnect?.includesFirst = true
      }
      door.broker.world.run(for: .seconds(1))
      #expect(door.failure == .insecureConnection)
      #expect(door.broker.accepted == 0)
    }
    let door = try Door { $0.allowsPlaintextCredentials = false }
    #expect(try door.credentials() == .none)
  }
}
