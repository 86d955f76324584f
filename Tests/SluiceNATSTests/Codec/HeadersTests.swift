import Testing

@testable import SluiceNATS

@Suite("Message headers")
struct HeadersTests {
  private func view<Result>(_ text: String, _ body: (NATSHeadersView) -> Result) -> Result {
    bytes(text).withUnsafeBytes { body(NATSHeadersView(NATSBytes($0))) }
  }

  @Test(
    "a status stands in the first line",
    arguments: [
      ("NATS/1.0\r\n\r\n", nil, ""), ("NATS/1.0 503\r\n\r\n", 503, ""),
      ("NATS/1.0 100 Idle Heartbeat\r\nA: b\r\n\r\n", 100, "Idle Heartbeat"),
      ("NATS/1.0 204 EOB\r\n\r\n", 204, "EOB"),
      ("NATS/1.0   404   Message Not Found \r\n\r\n", 404, "Message Not Found"),
      ("NATS/1.0 abc\r\n\r\n", nil, ""),
    ] as [(String, Int?, String)])
  func status(text: String, status: Int?, description: String) {
    view(text) {
      #expect($0.status == status)
      #expect($0.statusText == description)
    }
  }

  @Test("the first value of a name counts, without blanks around it, and names differ by their letters' size")
  func lookUp() {
    view("NATS/1.0\r\nA:b\r\nNats-Sequence:  17 \r\nA: c\r\nno colon\r\nE:\r\nU: a:b\r\n\r\n") {
      #expect($0["A"]?.text == "b")
      #expect($0["a"]?.text == nil)
      #expect($0.number("Nats-Sequence") == 17)
      #expect($0.number("A") == nil)
      #expect($0["E"]?.text == "")
      #expect($0["U"]?.text == "a:b")
      #expect($0["no colon"]?.text == nil)
      var names: [String] = []
      $0.visit { name, _ in
        names.append(name.text)
        return true
      }
      #expect(names == ["A", "Nats-Sequence", "A", "E", "U"])
    }
  }

  @Test("headers that are added are found, and are encoded in order")
  func add() throws {
    var headers = NATSHeaders()
    #expect(headers.isEmpty)
    #expect(headers.encodedCount == 0)
    try headers.add("A", "1")
    try headers.add("Long-Name", "a value: with a colon")
    #expect(headers["A"] == "1")
    #expect(headers["Long-Name"] == "a value: with a colon")
    #expect(headers["B"] == nil)
    #expect(headers.status == nil)
    #expect(headers.encodedCount == "NATS/1.0\r\nA: 1\r\nLong-Name: a value: with a colon\r\n\r\n".utf8.count)
  }

  @Test(
    "a header that would become several is refused",
    arguments: [
      ("", "a"), ("a b", "c"), ("a:", "b"), ("a\r\nb", "c"), ("a", "b\r\nc: d"), ("a", "b\nc"), ("ä", "b"),
    ])
  func refuse(name: String, value: String) {
    var headers = NATSHeaders()
    let error = #expect(throws: NATSError.self) { try headers.add(name, value) }
    #expect(error?.code == .invalidHeader)
    #expect(headers.isEmpty)
  }
}
