import TestSupport
import Testing

@testable import SluiceHTTP

@Suite("Bodies of requests")
struct HTTPBodyReaderTests {
  /// A chunked body is the same however the network splits it. An invalid one is rejected, and never read beyond its end.
  @Test(arguments: 1...200 as ClosedRange<UInt64>) func bodiesAreReadWhereverTheyAreCut(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    var body: [UInt8] = []
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 0...5, using: &random) {
      let chunk = (0..<Int.random(in: 1...40, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      body += chunk
      bytes += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [0x0D, 0x0A]
    }
    bytes += Array("0\r\n\r\n".utf8)
    let rest = Array("GET".utf8)
    if seed % 2 == 0 {
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
    }

    func read(cuts: () -> Int) -> (body: [UInt8], taken: Int, isDone: Bool)? {
      var reader = HTTPBodyReader(length: nil, limit: 1000)
      var left = (bytes + rest)[...]
      var taken = 0
      while !left.isEmpty, !reader.isDone {
        let part = left.prefix(cuts())
        guard let count = try? reader.take(part) else { return nil }
        taken += count
        left = left.dropFirst(count)
        if count < part.count { break }
      }
      return (reader.body, taken, reader.isDone)
    }
    let whole = read { .max }
    let single = read { 1 }
    let cut = read { Int.random(in: 1...20, using: &random) }
    #expect(whole?.body == single?.body && whole?.taken == single?.taken && whole?.isDone == single?.isDone)
    #expect(whole?.body == cut?.body && whole?.taken == cut?.taken)
    if seed % 2 == 1 {
      #expect(whole?.body == body)
      #expect(whole?.taken == bytes.count)
      #expect(whole?.isDone == true)
    }
  }

  /// If two readers disagreed about a chunk's size, a body could hide a request (RFC 9112, 7.1).
  @Test(arguments: ["+5", "-0", "0x5", "", "5g", "fffffffffffffffff"]) func aSizeOfAChunkHasDigitsOnly(
    size: String
  ) {
    var reader = HTTPBodyReader(length: nil, limit: 1000)
    #expect(throws: HTTPProblem.self) { try reader.take(Array("\(size)\r\nabcde\r\n0\r\n\r\n".utf8)[...]) }
  }
}
