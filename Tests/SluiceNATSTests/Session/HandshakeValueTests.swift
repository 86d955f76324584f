import SluiceIO
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("The handshake with a NATS server, as a value")
struct HandshakeValueTests {
  private static let field = #"{"headers":true,"max_payload":1000,"server_name":"n1""#

  private static func info(_ fields: String = "") throws -> NATSServerInfo {
    let bytes = Array("\(field)\(fields)}".utf8)
    return try bytes.withBytes { bytes throws(NATSError) in try NATSServerInfo(json: bytes) }
  }

  private static func handshake(
    _ address: String = "127.0.0.1:1", isSecure: Bool = false, _ credentials: NATSCredentials = .none
  ) throws -> NATSHandshake {
    NATSHandshake(
      with: try NATSAddress(parsing: address), isSecure: isSecure, credentials: credentials, NATSOptions())
  }

  /// An action as text, or an error's code.
  private static func note(_ body: () throws(NATSError) -> NATSHandshake.Action) -> String {
    do throws(NATSError) {
      switch try body() {
      case .none: return "none"
      case .secure: return "secure"
      case .connect(let connect): return connect.tls_required ? "connect over TLS" : "connect"
      }
    } catch {
      return "\(error.code)"
    }
  }

  @Test("INFO is answered by CONNECT, once")
  func plain() throws {
    var handshake = try Self.handshake()
    let info = try Self.info()
    #expect(Self.note { () throws(NATSError) in try handshake.secured(info) } == "none")
    #expect(Self.note { () throws(NATSError) in try handshake.received(info) } == "connect")
    #expect(handshake.step == .authenticating)
    #expect(Self.note { () throws(NATSError) in try handshake.received(info) } == "none")
  }

  @Test("TLS comes first where the server or the address asks for it, and INFO meanwhile changes nothing")
  func secure() throws {
    for (address, fields) in [
      ("127.0.0.1:1", #","tls_required":true"#), ("tls://localhost:1", #","tls_available":true"#),
    ] {
      var handshake = try Self.handshake(address)
      let info = try Self.info(fields)
      #expect(Self.note { () throws(NATSError) in try handshake.received(info) } == "secure")
      #expect(handshake.step == .securing)
      #expect(Self.note { () throws(NATSError) in try handshake.received(info) } == "none")
      #expect(Self.note { () throws(NATSError) in try handshake.secured(info) } == "connect over TLS")
      #expect(Self.note { () throws(NATSError) in try handshake.secured(info) } == "none")
    }
    var first = try Self.handshake("tls://localhost:1", isSecure: true)
    let info = try Self.info(#","tls_required":true"#)
    #expect(Self.note { () throws(NATSError) in try first.received(info) } == "connect over TLS")
  }

  @Test("a server that can't be used is refused, and nothing secret is sent to it")
  func refused() throws {
    let info = try Self.info()
    var plain = try Self.handshake("tls://localhost:1")
    #expect(Self.note { () throws(NATSError) in try plain.received(info) } == "tls-failed")
    var old = try Self.handshake()
    let bytes = Array(#"{"max_payload":1000}"#.utf8)
    let withoutHeaders = try bytes.withBytes { bytes throws(NATSError) in try NATSServerInfo(json: bytes) }
    #expect(Self.note { () throws(NATSError) in try old.received(withoutHeaders) } == "protocol-violation")
    var remote = try Self.handshake("192.0.2.1:1", .token("secret"))
    #expect(Self.note { () throws(NATSError) in try remote.received(info) } == "insecure-connection")
    var secured = try Self.handshake("192.0.2.1:1", isSecure: true, .token("secret"))
    #expect(Self.note { () throws(NATSError) in try secured.received(info) } == "connect over TLS")
  }
}
