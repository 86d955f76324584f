import SluiceStore
import TestSupport
import Testing

@testable import SluiceCluster

@Suite("Where a topic's batches are")
struct BatchIndexTests {
  private static func entry(_ offset: UInt64, records: UInt32, sequence: UInt64) -> BatchIndex.Entry {
    .init(
      header: BatchHeader(
        firstOffset: offset, bytesBefore: offset * 10, firstTime: Int64(offset), lastTime: Int64(offset),
        records: records, recordBytes: records * 10), sequence: sequence)
  }

  @Test(
    "an offset is found at or behind the sequence of its entry, however many batches there were",
    arguments: 1...50)
  func thinnedOut(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var index = BatchIndex(most: 32)
    var extent = StoredExtent()
    var sequences: [(offsets: Range<UInt64>, sequence: UInt64)] = []
    for sequence in 1...UInt64(400) {
      let records = UInt32.random(in: 1...5, using: &random)
      index.append(Self.entry(extent.head, records: records, sequence: 0))
      let offsets = extent.head..<extent.head + UInt64(records)
      index.place(offsets, at: sequence)
      sequences.append((offsets, sequence))
      extent.head = offsets.upperBound
      extent.bytesThrough = extent.head * 10
      #expect(index.back.count < 32)
      if Int.random(in: 0..<20, using: &random) == 0 {
        // As the limits of a topic do.
        let offset = UInt64.random(in: extent.firstOffset...extent.head, using: &random)
        guard case .at(let beginning) = index.cut(before: offset, extent) else {
          Issue.record("where the topic begins isn't known")
          return
        }
        #expect(beginning.firstOffset <= offset)
        #expect(beginning.bytesBefore == beginning.firstOffset * 10)
        extent.firstOffset = beginning.firstOffset
        extent.bytesBefore = beginning.bytesBefore
        index.drop(before: beginning.firstOffset)
        #expect(
          index.entries(from: extent.firstOffset).first?.header.firstOffset ?? extent.head
            == extent.firstOffset)
      }
      guard extent.firstOffset < extent.head else { continue }
      let offset = UInt64.random(in: extent.firstOffset..<extent.head, using: &random)
      let entry = try #require(index.entries(from: offset).first)
      let place = try #require(sequences.first { $0.offsets.contains(offset) })
      #expect(entry.header.firstOffset <= offset && offset < entry.header.endOffset)
      #expect(index.span(of: entry, last: sequence).contains(place.sequence))
    }
  }

  @Test("what is read from the beginning on joins what is known of the end")
  func front() {
    var index = BatchIndex()
    for offset in 10..<15 {
      index.append(Self.entry(UInt64(offset), records: 1, sequence: UInt64(offset) + 100))
    }
    var extent = StoredExtent()
    extent.head = 15
    guard case .unknown = index.cut(before: 5, extent) else {
      Issue.record("what isn't known is cut")
      return
    }
    #expect(index.gap(around: 5, floor: 3, last: 114) == 3...110)
    for offset in 0..<7 {
      index.extendFront(Self.entry(UInt64(offset), records: 1, sequence: UInt64(offset) + 50))
    }
    #expect(index.gap(around: 8, floor: 3, last: 114) == 56...110)
    #expect(index.entries(from: 8).isEmpty)
    guard case .at(let beginning) = index.cut(before: 5, extent) else {
      Issue.record("what is known isn't cut")
      return
    }
    #expect(beginning == .init(firstOffset: 5, bytesBefore: 50))
    for offset in 7..<10 {
      index.extendFront(Self.entry(UInt64(offset), records: 1, sequence: UInt64(offset) + 50))
    }
    #expect(index.front.isEmpty)
    #expect(index.entries(from: 0).map(\.header.firstOffset) == Array(0..<15))
    // Commits in progress aren't stored.
    index.remove(from: 12)
    #expect(index.entries(from: 0).count == 12)
  }
}
