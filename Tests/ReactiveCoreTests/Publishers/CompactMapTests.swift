import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CompactMapTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "CompactMap") { $0.compactMap { $0 } }
  }

  @Test func passesWhatIsNotNilAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(1)) { $0.compactMap { $0 > 1 ? "\($0)" : nil } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.take() == [.subscription("CompactMap"), .requested(.max(1)), .value("2")])
  }

  @Test func combinesWithItselfAndWithMap() {
    let publisher = [1, 2, 3].publisher.eraseToAnyPublisher()
      .compactMap { $0 > 1 ? $0 : nil }.map { $0 + 10 }.compactMap { $0 > 12 ? "\($0)" : nil }
    #expect(type(of: publisher) == Publishers.CompactMap<AnyPublisher<Int, Never>, String>.self)
    var values: [String] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == ["13"])
  }
}

@Suite struct TryCompactMapTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryCompactMap") { $0.tryCompactMap { $0 } }
  }

  @Test func passesDropsAndFails() {
    let rig = Rig {
      $0.tryCompactMap { if $0 > 2 { throw Oops(number: $0) } else { return $0 == 2 ? 20 : nil } }
    }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    rig.source.send(3)
    #expect(
      rig.take() == [
        .subscription("TryCompactMap"), .requested(.unlimited), .value(20), .cancelled,
        .failed(Oops(number: 3)),
      ])
  }

  @Test func combinesWithItself() {
    let publisher = [1, 2].publisher.eraseToAnyPublisher()
      .tryCompactMap { (value: Int) -> Int? in value }.compactMap { (value: Int) -> Int? in
        value > 1 ? value : nil
      }
    #expect(type(of: publisher) == Publishers.TryCompactMap<AnyPublisher<Int, Never>, Int>.self)
    var values: [Int] = []
    _ = publisher.sink(receiveCompletion: { _ in }) { values.append($0) }
    #expect(values == [2])
  }
}
