import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryFilterTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryFilter") { $0.tryFilter { _ in true } }
  }

  @Test func passesDropsAndFails() {
    let rig = Rig { $0.tryFilter { if $0 > 2 { throw Oops(number: $0) } else { return $0 == 2 } } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(3) == .none)
    #expect(
      rig.take() == [
        .subscription("TryFilter"), .requested(.unlimited), .value(2), .cancelled, .failed(Oops(number: 3)),
      ])
  }

  @Test func combinesWithFilter() {
    let publisher = [1, 2, 3, 4].publisher.eraseToAnyPublisher().filter { $0 > 1 }.tryFilter { $0 > 2 }.filter
    { $0 > 3 }
    #expect(type(of: publisher) == Publishers.TryFilter<AnyPublisher<Int, Never>>.self)
    var values: [Int] = []
    _ = publisher.sink(receiveCompletion: { _ in }) { values.append($0) }
    #expect(values == [4])
  }
}
