import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for doors")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: HTTPProbe.Target.allCases)
  func replay(_ target: HTTPProbe.Target) throws {
    #expect(try Corpus.replay(target, of: HTTPProbe.self) > 0)
  }

  @Test("every kept value is taken or refused, not worse", arguments: MQTTValueProbe.Target.allCases)
  func replayValues(_ target: MQTTValueProbe.Target) throws {
    #expect(try Corpus.replay(target, of: MQTTValueProbe.self) > 0)
  }

  @Test("requests with random damage do no harm, and are the same however they are cut")
  func random() throws {
    var random = SeededRandom.printed()
    let requests = [
      "POST /topics/t?lines HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\nSluice-Key: k\r\n\r\n5\r\na\nb\nc\r\n0\r\n\r\n",
      "GET /topics/t%2e?from=last:3&count=5&header=a:b&demand=2&cursor=c HTTP/1.1\r\nHost: b\r\nAuthorization: Basic YTpi\r\n\r\n",
      "POST /topics/t/groups/g/ack?member=m&wait=3s HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\n1-4,9",
      "PUT /topics/t?replay-records=3&flow=lossless HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
    ]
    for _ in 0..<2000 {
      var bytes: [UInt8] = [.random(in: 1...40, using: &random)]
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        bytes += Array(requests[.random(in: requests.indices, using: &random)].utf8)
      }
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        bytes[.random(in: 1..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      try HTTPProbe.run(.httpRequests, on: bytes)
    }
  }
}
