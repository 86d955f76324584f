import TestSupport
import Testing

@testable import SluiceTopics

/// The first elements of a sequence in an order.
@Suite struct SequencePageTests {
  @Test func aPageIsTheStartOfTheSortedSequence() {
    var random = SeededRandom.printed()
    for _ in 0..<200 {
      let count = Int.random(in: 0...2_000, using: &random)
      let numbers = (0..<count).map { _ in Int.random(in: 0...500, using: &random) }
      let limit = Int.random(in: 0...300, using: &random)
      let (page, more) = numbers.page(atMost: limit, by: <)
      #expect(page == Array(numbers.sorted().prefix(limit)))
      #expect(more == (count > limit))
    }
  }
}
