import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MapTests {
  @Test func transformsEachValueAndReturnsTheDemandOfDownstream() {
    let rig = Rig(demand: .max(1), perValue: .max(3)) { $0.map { "\($0)" } }
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(1))])
    #expect(rig.source.send(1) == .max(3))
    #expect(rig.source.send(2) == .max(3))
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.value("1"), .value("2"), .failed(Oops(number: 1))])
  }

  @Test func isTransparent() {
    let rig = Rig(demand: nil) { $0.map { $0 } }
    #expect(rig.source.subscriber?.description == "Map")
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    // It holds no state, so the subscriber ignores values of a source after the end.
    #expect(
      rig.take() == [.subscription("Manual"), .cancelled, .value(1), .finished, .subscription("Manual")])
  }

  @Test func mapsOfMapsAreOne() {
    let publisher = Just(1).eraseToAnyPublisher().map { $0 + 1 }.map { "\($0)" }
    #expect(type(of: publisher) == Publishers.Map<AnyPublisher<Int, Never>, String>.self)
    var values: [String] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == ["2"])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.map { $0 } }
    expectClosureReleased { source, token in
      source.map { value in withExtendedLifetime(token) { value } }
    }
  }

  @Test func cancellingAndRequestingWithinAValueReachTheSource() {
    let rig = Rig(demand: .max(1)) { $0.map { $0 * 2 } }
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.request(.max(3))
      rig.subscription.cancel()
    }
    rig.source.send(1)
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value(2), .requested(.max(3)), .cancelled,
      ])
  }

  @Test func aSourceMayFinishWithinTheRequest() {
    let subscriber = TrackingSubscriber<Int, Never>(.max(1))
    Just(1).eraseToAnyPublisher().map { $0 + 1 }.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Just"), .value(2), .finished])
  }
}
