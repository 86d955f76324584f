import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceCluster

@Suite("Messages of a shard's stream")
struct EnvelopeTests {
  @Test("an envelope is read as it was written, and takes 24 bytes")
  func envelope() throws {
    let envelope = EngineEnvelope(.change, fence: 7, commit: .max, part: 2, parts: 3)
    let bytes = envelope.writer().bytes
    #expect(bytes.count == EngineEnvelope.size)
    #expect(try read(bytes) { try EngineEnvelope(&$0) } == envelope)
  }

  @Test("what is cut short, of another version or impossible is told apart")
  func malformed() {
    let good = EngineEnvelope(.front, fence: 7).writer().bytes
    for count in 0..<good.count { #expect(kind(of: Array(good.prefix(count))) == .damaged) }
    for (index, byte, expected) in [(0, 9, .newer), (1, 77, .newer), (2, 1, .damaged), (5, 0xFF, .damaged)]
      as [(Int, UInt8, StoreError.Kind)]
    {
      var bytes = good
      bytes[index] = byte
      #expect(kind(of: bytes) == expected)
    }
  }

  @Test("a commit counts under the last fence before it only, and a fence of an overtaken owner never does")
  func fences() {
    var table = FenceTable()
    #expect(!table.counts(1, under: 0))
    table.take(EngineFence(term: 1, opener: 5, .opened), at: 1)
    table.take(EngineFence(term: 2, opener: 6, .opened), at: 10)
    #expect(table.counts(10, under: 1))
    // The second of two commits in progress; the new owner's fence took the sequence of the first.
    #expect(!table.counts(11, under: 1))
    #expect(table.counts(11, under: 10))
    // The former owner reopens the shard with its old lease. Messages that the owner had already sent, expecting that sequence, don't count.
    table.take(EngineFence(term: 1, opener: 5, .opened), at: 20)
    #expect(!table.counts(21, under: 20))
    #expect(table.counts(19, under: 10))
    #expect(!table.counts(21, under: 10))
    table.take(EngineFence(term: 2, opener: 6, .barrier), at: 30)
    #expect(!table.counts(31, under: 10))
    #expect(table.counts(31, under: 30))
    table.drop(before: 12)
    #expect(table.fences.map(\.sequence) == [10, 30])
    #expect(table.counts(12, under: 10))
  }

  @Test("nothing counts behind a late change of a former owner, up to the owner's next fence")
  func lateChange() {
    var table = FenceTable()
    table.take(EngineFence(term: 1, opener: 5, .opened), at: 1)
    table.take(EngineFence(term: 2, opener: 6, .opened), at: 5)
    table.note(6, under: 5)
    table.note(7, under: 1)
    table.note(8, under: 5)
    #expect(table.counts(6, under: 5))
    #expect(!table.counts(7, under: 1))
    // The owner's previous change was rejected, and this one had its sequence by chance.
    #expect(!table.counts(8, under: 5))
    table.take(EngineFence(term: 2, opener: 6, .barrier), at: 9)
    table.note(10, under: 9)
    #expect(table.counts(10, under: 9))
  }

  private func read<Value>(_ bytes: [UInt8], _ body: (inout ByteReader) throws -> Value) rethrows -> Value {
    try bytes.withUnsafeBytes {
      var reader = ByteReader($0)
      return try body(&reader)
    }
  }

  private func kind(of bytes: [UInt8]) -> StoreError.Kind? {
    do {
      _ = try read(bytes) { try EngineEnvelope(&$0) }
      return nil
    } catch {
      return (error as? StoreError)?.kind
    }
  }
}
