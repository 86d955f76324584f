import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AnyPublisherTests {
  @Test func passesEverythingOn() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.eraseToAnyPublisher() }
    #expect(rig.source.subscriber?.combineIdentifier == rig.subscriber.combineIdentifier)
    #expect(rig.source.send(1) == .max(2))
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(1)), .value(1), .finished])
  }

  @Test func erasingTwiceAddsNoLayer() {
    let source = ManualPublisher<Int, Oops>()
    let erased = source.eraseToAnyPublisher().eraseToAnyPublisher()
    let subscriber = TrackingSubscriber<Int, Oops>()
    erased.subscribe(AnySubscriber(subscriber))
    #expect(source.subscriber?.combineIdentifier == subscriber.combineIdentifier)
    #expect(erased.description == "AnyPublisher")
    #expect(erased.playgroundDescription as? String == "AnyPublisher")
  }

  @Test func crossesIsolationWhenItsValuesMay() async {
    let publisher = Just(1).map { $0 + 1 }.eraseToAnyPublisher()
    let value = await Task.detached {
      var result = 0
      _ = publisher.sink { result = $0 }
      return result
    }.value
    #expect(value == 2)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.eraseToAnyPublisher().map { $0 }.eraseToAnyPublisher() }
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.eraseToAnyPublisher() }
  }
}
