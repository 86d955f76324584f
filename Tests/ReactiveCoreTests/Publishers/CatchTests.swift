import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CatchTests {
  typealias Other = ManualPublisher<Int, Never>

  @Test func goesOnWithTheOtherPublisher() {
    let other = Other()
    var errors: [Oops] = []
    let rig = Rig(demand: .max(5), perValue: .max(2)) { source in
      source.catch { (error: Oops) -> Other in
        errors.append(error)
        return other
      }
    }
    #expect(rig.take() == [.subscription("Catch"), .requested(.max(5))])
    #expect(rig.source.send(1) == .max(2))
    #expect(rig.source.send(2) == .max(2))
    rig.source.send(completion: .failure(Oops(number: 7)))
    #expect(errors == [Oops(number: 7)])
    #expect(other.history.take() == [.requested(.max(7))])
    #expect(rig.source.send(3) == .none)
    rig.source.send(completion: .failure(Oops()))
    #expect(other.send(10) == .max(2))
    rig.subscription.request(.max(1))
    #expect(other.history.take() == [.requested(.max(1))])
    other.send(completion: .finished)
    other.send(completion: .finished)
    #expect(other.send(11) == .none)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(rig.take() == [.value(1), .value(2), .value(10), .finished])
    #expect(other.history.take() == [])
  }

  @Test func aFinishPasses() {
    let rig = Rig { $0.catch { _ in Just(1) } }
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("Catch"), .requested(.unlimited), .finished])
  }

  @Test func failsWithTheErrorOfTheOther() {
    let rig = Rig { $0.catch { error in Fail<Int, Oops>(error: Oops(number: error.number + 1)) } }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.subscription("Catch"), .requested(.unlimited), .failed(Oops(number: 2))])
  }

  @Test func unlimitedDemandStaysUnlimited() {
    let other = Other()
    let rig = Rig(perValue: .max(1)) { $0.catch { _ in other } }
    #expect(rig.source.send(1) == .max(1))
    rig.source.send(completion: .failure(Oops()))
    #expect(other.history.take() == [.requested(.unlimited)])
  }

  @Test func withoutDemandTheOtherIsAskedForNothingYet() {
    let rig = Rig(demand: nil) { $0.catch { _ in Just(8) } }
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("Catch")])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(8), .finished])
  }

  @Test func demandReturnedWhileUpstreamFailsGoesToTheOther() {
    let other = Other()
    let rig = Rig(demand: .max(1), perValue: .max(3)) { $0.catch { _ in other } }
    rig.subscriber.onValue = { [source = rig.source] in
      if $0 == 1 { source.send(completion: .failure(Oops())) }
    }
    #expect(rig.source.send(1) == .none)
    #expect(other.history.take() == [.requested(.max(3))])
  }

  @Test func cancelsWhicheverIsUnderWay() {
    let first = Rig(demand: .max(1)) { $0.catch { _ in Just(8) } }
    first.subscription.cancel()
    first.subscription.cancel()
    first.source.send(completion: .failure(Oops()))
    #expect(first.take() == [.subscription("Catch"), .requested(.max(1)), .cancelled])
    let other = Other()
    let second = Rig(demand: .max(1)) { $0.catch { _ in other } }
    second.source.send(completion: .failure(Oops()))
    second.subscription.cancel()
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
    #expect(second.take() == [.subscription("Catch"), .requested(.max(1))])
    other.sendSubscription()
    other.send(1)
    other.send(completion: .finished)
    #expect(other.history.take() == [.cancelled])
    #expect(second.take() == [])
  }

  @Test func cancellingFromWithinTheHandlerKeepsTheOtherFromDelivering() {
    let other = Other()
    var cancel: () -> Void = {}
    let rig = Rig { source in
      source.catch { (_: Oops) -> Other in
        cancel()
        return other
      }
    }
    cancel = { [subscriber = rig.subscriber] in subscriber.subscription?.cancel() }
    rig.source.send(completion: .failure(Oops()))
    #expect(other.history.take() == [.cancelled])
    #expect(rig.take() == [.subscription("Catch"), .requested(.unlimited)])
    cancel = {}
  }

  @Test func secondSubscriptionsAreCancelled() {
    let other = Other()
    let rig = Rig { $0.catch { _ in other } }
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Catch"), .requested(.unlimited), .cancelled])
    rig.source.send(completion: .failure(Oops()))
    other.sendSubscription()
    #expect(other.history.take() == [.requested(.unlimited), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.catch { _ in Just(1) } }
    expectEverythingReleased { $0.catch { _ in Empty<Int, Never>(completeImmediately: true) } }
    var released = 0
    do {
      let other = Other()
      other.onDeinit = { released += 1 }
      let rig = Rig { $0.catch { _ in other } }
      rig.subscriber.onDeinit = { released += 1 }
      rig.source.send(completion: .failure(Oops()))
      rig.source.forget()
      rig.subscription.cancel()
      other.forget()
    }
    #expect(released == 2)
  }

  @Test func showsItsDownstreamAndDemand() {
    let rig = Rig(demand: .max(3)) { $0.catch { _ in Just(1) } }
    let mirror = Mirror(reflecting: rig.subscription)
    #expect(mirror.children.map(\.label) == ["downstream", "demand"])
    #expect(mirror.descendant("demand") as? Subscribers.Demand == .max(3))
    #expect(rig.source.subscriber?.description == "Catch")
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      Rig(demand: nil) { $0.catch { _ in Just(1) } }.subscription.request(.none)
    }
  }

  @Test func requestsMayRaceWithTheHandover() async {
    for _ in 0..<300 {
      let other = (0..<100).publisher
      let source = PassthroughSubject<Int, Oops>()
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Never>())
      source.catch { _ in other }.subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      let upstream = UncheckedBox(source)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask { for _ in 0..<25 { subscription.value.request(.max(1)) } }
        }
        group.addTask { upstream.value.send(completion: .failure(Oops())) }
      }
      let expected = [.subscription("Catch")] + (0..<100).map { Happening.value($0) } + [.finished]
      #expect(subscriber.value.history.events == expected)
    }
  }

  @Test func ignoresACompletionThatComesBeforeTheSubscription() {
    let rig = Rig(demand: .max(1), subscribesAtOnce: false) {
      $0.catch { _ in Just(2).setFailureType(to: Oops.self) }
    }
    rig.source.send(completion: .failure(Oops()))
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("Catch"), .requested(.max(1)), .value(2), .finished])
  }
}
