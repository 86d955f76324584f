import SluiceWire
import TestSupport
import Testing

/// Valid and invalid bytes of a peer: no decoder traps, reads outside its memory, or accepts invalid values.
@Suite("Hostile bytes")
struct MutationTests {
  private static let runs = 1200

  @Test("random bytes")
  func randomBytes() throws {
    var random = SeededRandom.printed(for: "random bytes")
    for _ in 0..<Self.runs {
      let bytes = random.bytes(.random(in: 0...60, using: &random))
      try decodeEverything(bytes, &random)
    }
  }

  @Test("valid frames with some bytes changed")
  func mutatedFrames() throws {
    var frames = RandomFrames(random: .printed(for: "mutated frames"))
    for _ in 0..<Self.runs {
      let frame = frames.next().encoded(stream: 1)
      var body = Array(frame[FrameHeader.size...])
      body.mutate(using: &frames.random)
      try WireProbe.bodies(body)
      var stream = frame + frames.next().encoded(stream: 2)
      stream.mutate(using: &frames.random)
      try streamInChunks(stream, &frames.random)
    }
  }

  @Test("valid batches with some bytes changed")
  func mutatedBatches() throws {
    var random = SeededRandom.printed(for: "mutated batches")
    for _ in 0..<Self.runs {
      var builder = BatchBuilder()
      for _ in 0..<Int.random(in: 1...5, using: &random) { try builder.append(.random(using: &random)) }
      var batch = builder.bytes
      let count = builder.count
      batch.mutate(using: &random)
      try WireProbe.batch(batch, count: count)
      for type in [FrameType.publish, .deliver] {
        var frame = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size) + batch
        frame.withUnsafeMutableBytes {
          DeliverHeader(firstOffset: .random(in: 0 ... .max, using: &random), count: count)
            .write(at: $0.baseAddress!, stream: 1, batchLength: batch.count)
          $0[4] = type.rawValue
        }
        try streamInChunks(frame, &random)
      }
    }
  }

  @Test("topic names with some bytes changed")
  func mutatedNames() throws {
    var random = SeededRandom.printed(for: "mutated names")
    for _ in 0..<Self.runs {
      var name = Array("orders.größe.🙂.new".utf8)
      name.mutate(using: &random)
      try WireProbe.topicName(name)
    }
  }

  private func decodeEverything(_ bytes: [UInt8], _ random: inout SeededRandom) throws {
    try streamInChunks(bytes, &random)
    try WireProbe.bodies(bytes)
    try WireProbe.batch(bytes, count: .random(in: 0...3, using: &random))
    try WireProbe.topicName(bytes)
  }

  private func streamInChunks(_ bytes: [UInt8], _ random: inout SeededRandom) throws {
    let chunks = (0..<Int.random(in: 0...4, using: &random)).map { _ in Int.random(in: 1...40, using: &random)
    }
    try WireProbe.stream(
      bytes, chunks: chunks, openingAt: [nil, .broker, .client].randomElement(using: &random)!)
  }
}

extension [UInt8] {
  /// Changes, removes, inserts or repeats a few bytes, preferably of lengths.
  fileprivate mutating func mutate(using random: inout SeededRandom) {
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      guard !isEmpty else { return append(.random(in: 0 ... .max, using: &random)) }
      let index = Int.random(in: indices, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: self[index] = .random(in: 0 ... .max, using: &random)
      case 1: self[index] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random)!
      case 2: self[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 3: removeSubrange(index..<Swift.min(count, index + .random(in: 1...8, using: &random)))
      case 4: insert(contentsOf: random.bytes(.random(in: 1...8, using: &random)), at: index)
      default: insert(contentsOf: self[index..<Swift.min(count, index + 8)], at: index)
      }
    }
  }
}
