import SluiceIO
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("The handshake with a NATS server")
struct HandshakeTests {
  private static let seed = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"

  @Test("INFO is answered by CONNECT and PING, and PONG by the subscriptions")
  func plain() throws {
    var test = try SessionUnderTest()
    #expect(test.start() == ["connect 127.0.0.1:1 as 127.0.0.1"])
    let number = try test.session.subscribe("a.>", queue: "q")
    test.session.opened(isSecure: false, credentials: .none, at: test.now)
    #expect(test.sent() == "")
    #expect(try test.receive(SessionUnderTest.info + "} \r\n") == [])
    let connect = test.sent()
    #expect(connect.hasPrefix("CONNECT {"))
    #expect(connect.hasSuffix("}\r\nPING\r\n"))
    for part in [#""verbose":false"#, #""headers":true"#, #""no_responders":true"#, #""tls_required":false"#]
    {
      #expect(connect.contains(part))
    }
    #expect(!test.session.isOpen)
    #expect(try test.receive("PONG\r\n") == ["ready"])
    #expect(test.session.isOpen)
    let subscribed = test.sent()
    #expect(subscribed.hasPrefix("SUB _INBOX."))
    #expect(subscribed.hasSuffix(".* 1\r\nSUB a.> q \(number)\r\n"))
  }

  @Test("credentials go into CONNECT, and the nonce is signed")
  func credentials() throws {
    let table: [(NATSCredentials, [String])] = [
      (.password(user: "u", password: "p\"q"), [#""user":"u""#, #""pass":"p\"q""#]),
      (.token("t"), [#""auth_token":"t""#]),
      (
        .nkey(try NKey(seed: Self.seed)),
        [
          #""nkey":"UCK5N7N66OBOINFXAYC2ACJQYFSOD4VYNU6APEJTAVFZB2SVHLKGEW7L""#,
          #""sig":"kagPGrixaWS5yuHqw9nTQrda1Q376fK3fRCGtYdF4_w2aSk-4O7Ca0JM0qvzm69HH6MoMps2yF6Q0Qs830JZCA""#,
        ]
      ),
      (
        .signedToken(jwt: "a.b.c", try NKey(seed: Self.seed)),
        [#""jwt":"a.b.c""#, #""sig":"kagPGrixaWS5yuHqw9"#]
      ),
    ]
    for (credentials, parts) in table {
      var test = try SessionUnderTest()
      _ = test.start()
      test.session.opened(isSecure: false, credentials: credentials, at: test.now)
      _ = try test.receive(SessionUnderTest.info + #","nonce":"iBFByN3zQjAT7dQ"}"# + "\r\n")
      let connect = test.sent()
      for part in parts { #expect(connect.contains(part), "\(connect)") }
    }
  }

  @Test("TLS comes before the credentials when the server or the address asks for it")
  func upgrade() throws {
    for (address, fields) in [
      ("127.0.0.1:1", #","tls_required":true}"#), ("tls://localhost:1", #","tls_available":true}"#),
    ] {
      var test = try SessionUnderTest([address])
      _ = test.start()
      test.session.opened(isSecure: false, credentials: .token("secret"), at: test.now)
      let name = try NATSAddress(parsing: address).host
      #expect(try test.receive(SessionUnderTest.info + fields + "\r\n") == ["secure \(address) as \(name)"])
      #expect(test.sent() == "")
      #expect(notes(test.session.secured(at: test.now)) == [])
      let connect = test.sent()
      #expect(connect.contains(#""tls_required":true"#))
      #expect(connect.contains("secret"))
    }
  }

  @Test("with TLS first, INFO is answered at once")
  func handshakeFirst() throws {
    var test = try SessionUnderTest(["tls://localhost:1"]) { $0.handshakeFirst = true }
    _ = test.start()
    test.session.opened(isSecure: true, credentials: .none, at: test.now)
    #expect(try test.receive(SessionUnderTest.info + #","tls_required":true}"# + "\r\n") == [])
    #expect(test.sent().hasPrefix("CONNECT"))
  }

  @Test("an address with TLS isn't used without it")
  func downgrade() throws {
    var test = try SessionUnderTest(["tls://localhost:1"])
    _ = test.start()
    test.session.opened(isSecure: false, credentials: .token("secret"), at: test.now)
    #expect(try test.receive(SessionUnderTest.info + "}\r\n") == ["disconnect", "interrupted: tls-failed"])
    #expect(test.sent() == "")
  }

  @Test("passwords and tokens stay on this machine without TLS, signatures don't")
  func plaintextCredentials() throws {
    func run(_ credentials: NATSCredentials, _ change: (inout NATSOptions) -> Void = { _ in }) throws
      -> String
    {
      var test = try SessionUnderTest(["192.0.2.1:1"], change)
      _ = test.start()
      test.session.opened(isSecure: false, credentials: credentials, at: test.now)
      let notes = try test.receive(SessionUnderTest.info + #","nonce":"n"}"# + "\r\n")
      return notes.isEmpty ? test.sent() : notes.joined(separator: ", ")
    }
    #expect(try run(.token("secret")) == "disconnect, interrupted: insecure-connection")
    #expect(
      try run(.password(user: "u", password: "secret")) == "disconnect, interrupted: insecure-connection")
    #expect(try run(.nkey(NKey(seed: Self.seed))).hasPrefix("CONNECT"))
    #expect(try run(.token("secret")) { $0.allowsPlaintextCredentials = true }.contains("secret"))
  }

  @Test("a refusal names the server and what to do, and ends the search after some rounds")
  func refusal() throws {
    var test = try SessionUnderTest { $0.reconnect.refusals = 2 }
    _ = test.start()
    for round in 1...2 {
      test.session.opened(isSecure: false, credentials: .token("x"), at: test.now)
      _ = try test.receive(SessionUnderTest.info + "}\r\n")
      let notes = try test.receive("-ERR 'Authorization Violation'\r\n")
      if round == 1 {
        #expect(notes == ["disconnect", "interrupted: authentication-failed"])
        #expect(test.pass(.seconds(1)) == ["connect 127.0.0.1:1 as 127.0.0.1"])
      } else {
        #expect(notes == ["disconnect", "interrupted: authentication-failed", "closed: gave-up"])
      }
    }
    #expect(test.session.nextDeadline == nil)
  }

  @Test("a server that says nothing, or isn't one, is given up on")
  func silence() throws {
    var test = try SessionUnderTest { $0.connectTimeout = .seconds(3) }
    _ = test.start()
    #expect(test.pass(.seconds(2)) == [])
    #expect(test.pass(.seconds(1)) == ["disconnect", "interrupted: connect-timeout"])
    #expect(test.pass(.seconds(1)) == ["connect 127.0.0.1:1 as 127.0.0.1"])
    test.session.opened(isSecure: false, credentials: .none, at: test.now)
    #expect(test.pass(.seconds(3)).first == "disconnect")
    _ = test.pass(.seconds(1))
    test.session.opened(isSecure: false, credentials: .none, at: test.now)
    #expect(
      try test.receive("INFO {\"max_payload\":\"x\"}\r\n") == [
        "disconnect", "interrupted: protocol-violation",
      ])
  }

  @Test(
    "the server's errors have codes and say what to do",
    arguments: [
      ("'Authorization Violation'", "authentication-failed"),
      ("'Authorization Timeout'", "authentication-failed"),
      ("'User Authentication Expired'", "credentials-expired"), ("'Stale Connection'", "keepalive-timeout"),
      ("'Slow Consumer'", "slow-consumer"), ("'Maximum Connections Exceeded'", "too-many-connections"),
      ("'maximum account active connections exceeded'", "too-many-connections"),
      ("'Secure Connection - TLS Required'", "tls-failed"),
      ("'Maximum Payload Violation'", "payload-too-large"),
      ("'Attempted To Connect To Route Port'", "protocol-violation"), ("'Something New'", "refused"),
    ])
  func serverErrors(text: String, code: String) throws {
    var test = try SessionUnderTest()
    try test.open()
    #expect(try test.receive("-ERR \(text)\r\n") == ["disconnect", "interrupted: \(code)"])
    let error = NATSError.read(String(text.dropFirst().dropLast())).error
    #expect(error.message.contains(text.dropFirst().dropLast()))
  }
}
