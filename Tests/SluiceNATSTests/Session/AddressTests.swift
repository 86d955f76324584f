import SluiceNATS
import Testing

@Suite("Addresses of NATS servers")
struct AddressTests {
  @Test(
    "an address has a scheme and a port or the usual ones",
    arguments: [
      ("127.0.0.1", "127.0.0.1:4222"), ("nats://a", "a:4222"), ("nats://a:1/", "a:1"),
      ("tls://a:1", "tls://a:1"),
      ("TLS://a", "tls://a:4222"), ("[::1]", "[::1]:4222"), ("nats://[::1]:5", "[::1]:5"),
    ])
  func valid(text: String, address: String) throws {
    #expect(try NATSAddress(parsing: text).description == address)
  }

  @Test("a scheme holds for the addresses behind it")
  func lists() throws {
    #expect(
      try NATSAddress.list(parsing: "a,tls://b:1, c,nats://d").map(\.description)
        == ["a:4222", "tls://b:1", "tls://c:4222", "d:4222"])
  }

  @Test(
    "what isn't an address is refused, without repeating secrets",
    arguments: [
      "", "nats://", "http://a", "a:b", "a:0", "a:99999", "nats://u:secret@a", "a,,b", "::1", "a b",
    ])
  func invalid(text: String) {
    let error = #expect(throws: NATSError.self) { try NATSAddress.list(parsing: text) }
    #expect(error?.code == .invalidAddress)
    #expect(error?.description.contains("secret") == false)
  }
}
