import SluiceWire
import Testing

@testable import SluiceBroker

@Suite("positions in several frames")
struct PositionBatchesTests {
  /// A position uses the bytes of its name and 24 more.
  @Test(
    "groups are as long as they may be, in order, and none is empty",
    arguments: [
      ([], 100, []),
      ([76], 100, [1]),
      ([76, 1], 100, [1, 1]),
      ([26, 26, 26], 100, [2, 1]),
      ([1, 1, 1, 1, 1], 100, [4, 1]),
      ([200, 1, 1], 100, [1, 2]),
      ([1, 200, 1], 100, [1, 1, 1]),
      ([1, 1], 1, [1, 1]),
    ] as [(names: [Int], most: Int, groups: [Int])])
  func groups(names: [Int], most: Int, groups: [Int]) {
    let positions = names.enumerated().map { index, length in
      TopicPosition(topic: String(repeating: "t", count: length), epoch: 1, nextOffset: UInt64(index))
    }
    let batches = positions.batches(ofBytes: most)
    #expect(batches.map(\.count) == groups)
    #expect(batches.flatMap { $0 } == positions)
  }
}
