import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore

/// Valid and invalid bytes of disks and files: no decoder traps, reads outside its input, or accepts invalid bytes.
@Suite("Hostile bytes in stores")
struct HostileBytesTests {
  private static let runs = 1_000

  @Test("random bytes", arguments: StoreProbe.Target.allCases)
  func randomBytes(_ target: StoreProbe.Target) throws {
    var random = SeededRandom.printed(for: "random bytes")
    for _ in 0..<Self.runs {
      try StoreProbe.run(target, on: random.bytes(.random(in: 0...90, using: &random)))
    }
  }

  @Test("rows with some bytes changed")
  func rows() throws {
    var random = SeededRandom.printed(for: "mutated rows")
    for _ in 0..<Self.runs {
      var row = StoreScene.row("orders.größe", epoch: .random(in: 0 ... .max, using: &random))
      row.lineage = (0..<Int.random(in: 0...3, using: &random)).map { .init(epoch: UInt64($0), end: 9) }
      row.ending = [nil, .finished, .failure(code: .producerFailure, message: "🙂")].randomElement(
        using: &random)!
      var bytes = row.encoded()
      try StoreProbe.row(bytes)
      bytes.mutate(using: &random)
      try StoreProbe.row(bytes)
    }
  }

  @Test("streams and sections with some bytes changed")
  func streams() throws {
    var random = SeededRandom.printed(for: "mutated streams")
    for _ in 0..<100 {
      let store = MemoryStore()
      try StoreScene.fill(store, &random)
      let stream = try StoreScene.export(store).bytes
      let sections = Self.sections(of: stream)
      for _ in 0..<5 {
        var bytes = stream
        bytes.mutate(using: &random)
        try StoreProbe.export(bytes, piece: .random(in: 1...999, using: &random))
        var bodies = sections
        for _ in 0..<Int.random(in: 1...2, using: &random) {
          let index = Int.random(in: bodies.indices, using: &random)
          switch Int.random(in: 0..<6, using: &random) {
          case 0: bodies.remove(at: index)
          case 1: bodies.insert(bodies.randomElement(using: &random)!, at: index)
          case 2: bodies[index].kind = .random(in: 0...6, using: &random)
          default: bodies[index].body.mutate(using: &random)
          }
          if bodies.isEmpty { break }
        }
        try StoreProbe.sections(
          bodies.flatMap {
            [
              $0.kind, UInt8(truncatingIfNeeded: $0.body.count),
              UInt8(truncatingIfNeeded: $0.body.count >> 8),
            ]
              + $0.body
          })
      }
    }
  }

  @Test("batches with some bytes changed")
  func batches() throws {
    var random = SeededRandom.printed(for: "mutated batches")
    for _ in 0..<Self.runs {
      let payloads = (0..<Int.random(in: 1...5, using: &random)).map { String(repeating: "x", count: $0 * 3) }
      let block = try StoreScene.batches([payloads], of: TopicID(rawValue: 1))[0]
      var bytes = Array(block.value)
      bytes.mutate(using: &random)
      try StoreProbe.batch(bytes)
    }
  }

  private static func sections(of stream: [UInt8]) -> [(kind: UInt8, body: [UInt8])] {
    var sections: [(kind: UInt8, body: [UInt8])] = []
    var position = ExportFormat.preambleSize
    while position < stream.count {
      let length = (0..<4).reduce(0) { $0 | Int(stream[position + 4 + $1]) << (8 * $1) }
      let body = position + ExportFormat.sectionHeaderSize
      sections.append((stream[position], Array(stream[body..<body + length])))
      position = body + length + ExportFormat.checksumSize
    }
    return sections
  }
}

extension [UInt8] {
  /// Changes, removes, inserts or repeats a few bytes.
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
