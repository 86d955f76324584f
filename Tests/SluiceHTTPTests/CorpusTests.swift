import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for HTTP")
struct CorpusTests {
  @Test("every kept input is answered or refused, not worse", arguments: HTTPSessionProbe.Target.allCases)
  func replay(_ target: HTTPSessionProbe.Target) throws {
    #expect(try Corpus.replay(target, of: HTTPSessionProbe.self) > 0)
  }

  @Test("requests with random damage do no harm, and are the same however they are cut")
  func random() throws {
    var random = SeededRandom.printed()
    let requests = [
      "POST /a?x=%20 HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na\nb\nc\r\n0\r\n\r\n",
      "GET /a HTTP/1.1\r\nHost: b\r\nOrigin: https://app.example\r\n\r\n",
      "OPTIONS /a HTTP/1.1\r\nHost: b\r\nOrigin: https://app.example\r\nAccess-Control-Request-Headers: x\r\n\r\n",
      "PUT /a HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n1-4,9",
      "DELETE /a HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
    ]
    for _ in 0..<2000 {
      var bytes = random.bytes(2)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes += Array(requests[.random(in: requests.indices, using: &random)].utf8)
      }
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        bytes[.random(in: 2..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      try HTTPSessionProbe.run(.httpSessions, on: bytes)
    }
  }
}
