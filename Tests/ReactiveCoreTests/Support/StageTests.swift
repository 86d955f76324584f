import ReactiveCore
import ReactiveTestSupport
import Testing

/// The common behaviour of all operators of the filter family.
@Suite struct StageTests {
  @Test func closuresAreReleasedAtTheEnd() {
    expectClosureReleased { source, token in source.tryFilter { _ in withExtendedLifetime(token) { true } } }
    expectClosureReleased { source, token in
      source.tryMap {
        withExtendedLifetime(token) {}; return $0
      }
    }
    expectClosureReleased { source, token in
      source.removeDuplicates { _, _ in withExtendedLifetime(token) { false } }
    }
    expectClosureReleased { source, token in source.prefix { _ in withExtendedLifetime(token) { true } } }
  }

  @Test func valuesRequestsAndCancellationMayRace() async {
    for _ in 0..<200 {
      let source = UncheckedBox(ManualPublisher<Int, Oops>())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, any Error>())
      source.value.tryFilter { $0.isMultiple(of: 2) }.subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      async let sending: Void = {
        for number in 1...100 { source.value.send(number) }
        source.value.send(completion: .finished)
      }()
      async let cancelling: Void = subscription.value.cancel()
      _ = await (sending, cancelling)
      let events = subscriber.value.history.events
      #expect(events.first == .subscription("TryFilter"))
      #expect(events.count { $0 == .finished } <= 1)
      // All values arrived in order, without gaps.
      let values = events.dropFirst().filter { $0 != .finished }
      #expect(values == (1...50).prefix(values.count).map { .value($0 * 2) })
      if events.last == .finished { #expect(values.count == 50) }
      #expect(source.value.history.events.count { $0 == .cancelled } <= 1)
    }
  }

  @Test func requestsMayRaceWithTheEnd() async {
    for _ in 0..<200 {
      let source = UncheckedBox(ManualPublisher<Int, Oops>())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, any Error>(history: History()))
      source.value.tryFilter { _ in true }.subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      async let requesting: Void = {
        for _ in 0..<50 { subscription.value.request(.max(1)) }
      }()
      async let finishing: Void = source.value.send(completion: .finished)
      _ = await (requesting, finishing)
      #expect(subscriber.value.history.events == [.subscription("TryFilter"), .finished])
    }
  }
}
