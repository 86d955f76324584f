import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CompactMapTests {
  @Test func withstandsReentrancy() {
    expectTransparentStreamWithstandsReentrancy { $0.compactMap { $0 } }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.compactMap { $0 } }
    expectClosureReleased { source, token in
      source.compactMap { value in withExtendedLifetime(token) { value } }
    }
  }

  @Test func passesWhatIsNotNilAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.compactMap { $0 > 1 ? "\($0)" : nil } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .max(2))
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(1)), .value("2")])
  }

  @Test func combinesWithItselfAndWithMap() {
    let publisher = [1, 2, 3].publisher.eraseToAnyPublisher()
      .compactMap { $0 > 1 ? $0 : nil }.map { $0 + 10 }.compactMap { $0 > 12 ? "\($0)" : nil }
    #expect(type(of: publisher) == Publishers.CompactMap<AnyPublisher<Int, Never>, String>.self)
    var values: [String] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == ["13"])
  }

  @Test func isTransparent() {
    let rig = Rig(demand: nil) { $0.compactMap { $0 > 1 ? $0 : nil } }
    #expect(rig.source.subscriber?.description == "CompactMap")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "CompactMap")
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
    rig.subscription.cancel()
    rig.source.send(2)
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    // It holds no state, so the subscriber ignores values of a source after the end.
    #expect(
      rig.take() == [.subscription("Manual"), .cancelled, .value(2), .finished, .subscription("Manual")])
  }
}
