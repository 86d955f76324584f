import SluiceWire
import TestSupport
import Testing

@Suite("Round trips")
struct RoundTripTests {
  @Test("random frames come back from their bytes as they were")
  func frames() throws {
    var frames = RandomFrames(random: .printed(for: "frame round trips"))
    func check<F: Frame>(_ frame: F, stream: UInt32) throws {
      let bytes = frame.encoded(stream: stream)
      let header = bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
      #expect(
        header
          == FrameHeader(length: UInt32(bytes.count - FrameHeader.size), type: F.type, stream: stream))
      #expect(try decode(Array(bytes[FrameHeader.size...]), like: frame) == frame)
    }
    for _ in 0..<3000 { try check(frames.next(), stream: frames.integer()) }
  }

  @Test("random streams of random frames come back whole, however they are cut")
  func streams() throws {
    var frames = RandomFrames(random: .printed(for: "stream round trips"))
    let examples = (0..<30).map { _ in
      let bytes = frames.next().encoded(stream: frames.integer())
      let header = bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
      return (bytes: bytes, output: DecodedFrame(header: header, body: Array(bytes[FrameHeader.size...])))
    }
    var verifier = DecoderVerifier(random: frames.random) {
      FrameCollector(maximumFrame: Limits.smallestFrame)
    }
    try verifier.verify(examples)
  }

  @Test("random records come back from a batch as they were, and the batch is valid")
  func records() throws {
    var random = SeededRandom.printed(for: "record round trips")
    for _ in 0..<300 {
      var builder = BatchBuilder()
      let records = (0..<Int.random(in: 1...10, using: &random)).map { _ in
        Attributes.random(using: &random)
      }
      for record in records { try builder.append(record) }
      let batch = builder.bytes
      #expect(builder.count == records.count)
      try batch.withUnsafeBytes {
        try RecordLayout.validate($0, count: builder.count, maximumRecord: batch.count)
      }
      let received = try walk(batch, count: builder.count).records
      #expect(received.map(\.isAttributed) == records.map { $0.key != nil || !$0.headers.isEmpty })
      for (record, sent) in zip(received, records) {
        #expect(try record.isAttributed ? Attributes(body: record.body) == sent : record.body == sent.payload)
        let length = try BatchBuilder.bodyLength(
          key: sent.key?.count, headers: sent.headers.map { ($0.name, $0.value) }, payload: sent.payload.count
        )
        #expect(record.body.count == length)
      }
    }
  }
}

extension Attributes {
  static func random(using random: inout SeededRandom) -> Attributes {
    func bytes() -> [UInt8] { random.bytes(.random(in: 0...20, using: &random)) }
    var record = Attributes(payload: bytes())
    if .random(using: &random) { record.key = bytes() }
    if .random(using: &random) {
      record.headers = (0..<Int.random(in: 0...3, using: &random)).map { _ in
        Header(name: bytes(), value: bytes())
      }
    }
    return record
  }
}

extension BatchBuilder {
  mutating func append(_ record: Attributes) throws(WireError) {
    // Copied, so that both pointers are valid at the same time.
    let key = record.key.map { UnsafeMutableRawBufferPointer.allocate(copying: $0) }
    let payload = UnsafeMutableRawBufferPointer.allocate(copying: record.payload)
    defer {
      key?.deallocate()
      payload.deallocate()
    }
    try append(
      key: key.map { UnsafeRawBufferPointer($0) }, headers: record.headers.map { ($0.name, $0.value) },
      payload: UnsafeRawBufferPointer(payload))
  }
}

extension UnsafeMutableRawBufferPointer {
  static func allocate(copying bytes: [UInt8]) -> UnsafeMutableRawBufferPointer {
    let memory = allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
    return memory
  }
}
