import SluiceHTTP
import Testing

@Suite("Origins of pages")
struct HTTPOriginTests {
  @Test(arguments: [
    ("http://127.0.0.1:80", "127.0.0.1:80", true), ("https://LOCALHOST:80", "localhost:80", true),
    ("http://[::1]:80", "[::1]:80", true), ("http://127.0.0.1:81", "127.0.0.1:80", false),
    ("http://evil.example:80", "evil.example:80", false),
    ("http://1.2.3.4.example", "1.2.3.4.example", false),
    ("null", "null", false), ("http://", "", false),
  ]) func theServersOwnNumericAddressIsNoPagesOrigin(origin: String, host: String, isOwn: Bool) {
    #expect(HTTPOrigin.isAddress(origin, of: host) == isOwn)
  }
}
