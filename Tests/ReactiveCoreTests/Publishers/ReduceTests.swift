import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ReduceTests {
  @Test func combinesAllValues() {
    expectReduction(named: "Reduce", of: [1, 2, 3], delivers: "0123") { $0.reduce("0") { "\($0)\($1)" } }
    expectReduction(named: "Reduce", of: [], delivers: 9) { $0.reduce(9, +) }
  }

  @Test func startsAnewForEachSubscriber() {
    let publisher = [1, 2].publisher.eraseToAnyPublisher().reduce(10, +)
    var results: [Int] = []
    for _ in 0..<2 { _ = publisher.sink { results.append($0) } }
    #expect(results == [13, 13])
  }
}
