import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore

/// Reading from a store after a repair has removed batches.
@Suite("Gaps between batches")
struct GapTests {
  @Test("whoever reads from within a gap gets what is behind it", arguments: [StoreEngine.memory, .lmdb])
  func fromWithin(_ engine: StoreEngine) throws {
    let tested = try engine.make()
    let store = try #require(tested.store as? any RepairableStore)
    let topic = TopicID(rawValue: 1)
    try StoreScene.fill(store)
    try StoreScene.fill(store, "next", id: 2)
    var repair = TopicRepair(topic)
    repair.batches = [3]
    try store.mend(repair)
    func first(_ offset: UInt64) throws -> UInt64? {
      try store.stored(topic, from: offset).first?.offset
    }
    for offset: UInt64 in 0...2 { #expect(try first(offset) == 0) }
    for offset: UInt64 in 3...9 { #expect(try first(offset) == 5) }
    // The same at the end, without later batches.
    repair.batches = [5]
    try store.mend(repair)
    for offset: UInt64 in 0...2 { #expect(try first(offset) == 0) }
    for offset: UInt64 in 3...11 { #expect(try first(offset) == nil) }
    #expect(try store.offset(in: topic, atOrAfter: 0) == 0)
    #expect(try store.offset(in: topic, atOrAfter: 1_001) == nil)
  }
}
