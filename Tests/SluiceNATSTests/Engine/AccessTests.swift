import EngineTestSupport
import FoundationEssentials
import Glibc
import SluiceTLS
import TestSupport
import Testing

@testable import SluiceNATS

/// Credentials and TLS of real servers.
@Suite(
  "Access to a real nats-server",
  .enabled(
    if: EngineProcess.program != nil, "nats-server isn't installed: scripts/nats-server.sh installs it"))
struct AccessTests {
  private static let seed = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"

  /// The client's first event.
  private func attempt(_ engine: EngineProcess, _ change: (inout NATSOptions) -> Void) throws -> String {
    let client = try RealClient([engine], change)
    try eventually("an event") { !client.events.isEmpty }
    return client.events[0]
  }

  private func check(_ settings: String, good: NATSCredentials, bad: [NATSCredentials]) throws {
    let engine = try EngineProcess(settings: settings)
    try engine.start()
    #expect(try attempt(engine) { $0.credentials = .fixed(good) } == "connected to n1")
    for credentials in bad + [.none] {
      #expect(
        try attempt(engine) { $0.credentials = .fixed(credentials) } == "interrupted: authentication-failed")
    }
  }

  @Test("users with passwords")
  func passwords() throws {
    try check(
      "authorization { users: [{ user: u, password: \"p w\" }] }",
      good: .password(user: "u", password: "p w"),
      bad: [.password(user: "u", password: "p"), .token("p w")])
  }

  @Test("tokens")
  func tokens() throws {
    try check("authorization { token: secret }", good: .token("secret"), bad: [.token("other")])
  }

  @Test("nkeys")
  func nkeys() throws {
    let key = try NKey(seed: Self.seed)
    try check(
      "authorization { users: [{ nkey: \(key.publicText) }] }", good: .nkey(key),
      bad: [.nkey(try NKey(seed: "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"))])
  }

  @Test("signed tokens of a credentials file")
  func signedTokens() throws {
    // An operator signs an account, which signs a user.
    let operatorKey = try Self.key(.operator, 1)
    let systemKey = try Self.key(.account, 4)
    let accountKey = try Self.key(.account, 2)
    let user = try Self.key(.user, 3)
    let operatorToken = try Self.token(
      operatorKey.key, about: operatorKey.key.publicText,
      #"{"type":"operator","version":2,"system_account":"\#(systemKey.key.publicText)"}"#)
    let limits =
      #""limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1}"#
    let account = #"{"type":"account","version":2,\#(limits),"default_permissions":{"pub":{},"sub":{}}}"#
    let accountToken = try Self.token(operatorKey.key, about: accountKey.key.publicText, account)
    let systemToken = try Self.token(operatorKey.key, about: systemKey.key.publicText, account)
    let userToken = try Self.token(
      accountKey.key, about: user.key.publicText,
      #"{"type":"user","version":2,"pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1}"#)
    let engine = try EngineProcess(
      settings: """
        operator: \(operatorToken)
        system_account: \(systemKey.key.publicText)
        resolver: MEMORY
        resolver_preload: {
          \(accountKey.key.publicText): \(accountToken)
          \(systemKey.key.publicText): \(systemToken)
        }
        """, jetStream: nil)
    try engine.start()
    let directory = try TemporaryDirectory()
    let path = directory.file("user.creds")
    func file(_ seed: String) -> String {
      """
      -----BEGIN NATS USER JWT-----
      \(userToken)
      ------END NATS USER JWT------
      -----BEGIN USER NKEY SEED-----
      \(seed)
      ------END USER NKEY SEED------
      """
    }
    try write(file(user.seed), to: path)
    #expect(try attempt(engine) { $0.credentials = .file(path) } == "connected to n1")
    // A key other than the token's.
    try write(file(Self.seed), to: path)
    #expect(try attempt(engine) { $0.credentials = .file(path) } == "interrupted: authentication-failed")
    #expect(
      try attempt(engine) { $0.credentials = .file(path + ".gone") } == "interrupted: invalid-credentials")
  }

  private static func key(_ kind: NKey.Kind, _ number: UInt8) throws -> (key: NKey, seed: String) {
    let prefix = [144 | kind.rawValue >> 5, (kind.rawValue & 31) << 3]
    let seed = NKey.encode(prefix + [UInt8](repeating: number, count: 32))
    return (try NKey(seed: seed), seed)
  }

  private static func token(_ signer: NKey, about subject: String, _ claims: String) throws -> String {
    let header = #"{"typ":"JWT","alg":"ed25519-nkey"}"#
    let body =
      #"{"jti":"X","iat":1700000000,"iss":"\#(signer.publicText)","name":"t","sub":"\#(subject)","nats":\#(claims)}"#
    let text = [header, body].map { url(bytes($0)) }.joined(separator: ".")
    return text + "." + url(try signer.sign(bytes(text)))
  }

  private static func url(_ bytes: [UInt8]) -> String {
    String(
      Data(bytes).base64EncodedString().compactMap {
        $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "=" ? nil : $0
      })
  }

  @Test("TLS behind INFO, and first", arguments: [false, true])
  func tls(isFirst: Bool) throws {
    let certificates = try TestCertificates.shared()
    let engine = try EngineProcess(
      settings: """
        tls {
          cert_file: "\(certificates.server)", key_file: "\(certificates.serverKey)", ca_file: "\(certificates.authority)"
          verify: true, handshake_first: \(isFirst)
        }
        """)
    try engine.start()
    func attempt(_ change: (inout NATSOptions) -> Void) throws -> String {
      let client = try RealClient([engine], requiresTLS: true) {
        $0.handshakeFirst = isFirst
        $0.tls.authorities = certificates.authority
        $0.tls.serverName = "localhost"
        $0.tls.certificate = certificates.client
        $0.tls.key = certificates.clientKey
        change(&$0)
      }
      try eventually("an event") { !client.events.isEmpty }
      guard client.events[0] == "connected to n1" else { return client.events[0] }
      return try client.get { try $0.accountInfo($1) }.streams == 0 ? "connected" : "?"
    }
    #expect(try attempt { _ in } == "connected")
    #expect(try attempt { $0.tls.serverName = "other.example" } == "interrupted: certificate-refused")
    #expect(try attempt { $0.tls.authorities = nil } == "interrupted: certificate-refused")
    let withoutOwn = try attempt {
      $0.tls.certificate = nil
      $0.tls.key = nil
    }
    #expect(withoutOwn.hasPrefix("interrupted"))
  }

  @Test("a server that is about to stop is left for another")
  func lameDuck() throws {
    let cluster = try EngineCluster()
    let client = try RealClient(cluster.servers) {
      $0.credentials = .fixed(.password(user: "app", password: "secret"))
    }.open()
    let first = String(try #require(client.events.last).dropFirst("connected to ".count))
    cluster.server(first).signal(SIGUSR2)
    try eventually("another server: \(client.events)") {
      client.events.last?.hasPrefix("connected") == true && client.events.last != "connected to \(first)"
    }
    #expect(client.events.contains { $0.hasPrefix("lame duck: \(first) ") })
    #expect(client.events.contains("interrupted: not-sent"))
  }
}
