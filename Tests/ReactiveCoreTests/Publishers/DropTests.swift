import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DropTests {
  @Test func asksForTheDroppedValuesItself() {
    let rig = Rig(demand: .max(3), perValue: .max(1)) { $0.dropFirst(2) }
    #expect(rig.take() == [.subscription("Drop"), .requested(.max(5))])
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(3) == .max(1))
    rig.source.send(completion: .finished)
    rig.source.send(4)
    #expect(rig.take() == [.value(3), .finished])
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "Drop") { $0.dropFirst(0) }
    expectStreamWithstandsReentrancy(named: "Drop") { $0.dropFirst(0) }
    expectEverythingReleased { $0.dropFirst(3) }
  }

  @Test func asksForWhatIsDroppedWithoutDemand() {
    let subscriber = TrackingSubscriber<Int, Never>()
    [1, 2].publisher.eraseToAnyPublisher().dropFirst(5).subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Drop"), .finished])
  }

  @Test func isKnownDownstreamBeforeUpstream() {
    let rig = Rig(demand: .max(10), subscribesAtOnce: false) { $0.dropFirst(4) }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("Drop")])
    #expect(rig.source.send(1) == .none)
    rig.source.sendSubscription()
    rig.source.sendSubscription()
    #expect(rig.take() == [.requested(.max(15)), .cancelled])
  }

  @Test func cancellingBeforeTheSubscriptionCancelsIt() {
    let rig = Rig(demand: nil, subscribesAtOnce: false) { $0.dropFirst(4) }
    rig.subscription.cancel()
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Drop"), .cancelled])
  }

  @Test func showsNothingInItsMirror() {
    let rig = Rig { $0.dropFirst(1) }
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
  }

  @Test func stopsTheProgramOnANegativeCount() async {
    await #expect(processExitsWith: .failure) {
      Just(1).eraseToAnyPublisher().dropFirst(-1).subscribe(TrackingSubscriber<Int, Never>())
    }
  }

  @Test func ignoresACompletionThatComesBeforeTheSubscription() {
    let rig = Rig(demand: .max(1), subscribesAtOnce: false) { $0.dropFirst(1) }
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    rig.source.sendSubscription()
    rig.source.send(1)
    rig.source.send(2)
    #expect(rig.take() == [.subscription("Drop"), .requested(.max(2)), .value(2)])
  }

  @Test func theGreatestCountAndDemandAddUpToUnlimited() {
    let rig = Rig(demand: .max(.max)) { $0.dropFirst(.max) }
    rig.subscription.request(.max(.max))
    #expect(rig.take() == [.subscription("Drop"), .requested(.unlimited), .requested(.max(.max))])
  }
}
