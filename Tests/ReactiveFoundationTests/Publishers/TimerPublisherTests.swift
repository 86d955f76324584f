import Foundation
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Testing

@Suite struct TimerPublisherTests {
  typealias Tracker = TrackingSubscriber<Date, Never>

  /// A separate mode of the run loop for each test, so that tests that share a thread don't run each other's timers.
  let mode = RunLoop.Mode("test \(UInt64.random(in: 0 ... .max))")

  var publisher: Timer.TimerPublisher {
    Timer.publish(every: 0.001, tolerance: 0, on: .current, in: mode)
  }

  /// Runs the thread's run loop until `isDone` returns true.
  func run(until isDone: () -> Bool) {
    let deadline = Date(timeIntervalSinceNow: 60)
    while !isDone(), Date() < deadline {
      _ = RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: 0.005))
    }
    #expect(isDone())
  }

  func count(_ tracker: Tracker) -> Int { tracker.history.events.count - 1 }

  @Test func keepsWhatItWasMadeWith() {
    let publisher = Timer.TimerPublisher(interval: 3, tolerance: 0.5, runLoop: .main, mode: .common)
    #expect(publisher.interval == 3)
    #expect(publisher.tolerance == 0.5)
    #expect(publisher.runLoop === RunLoop.main)
    #expect(publisher.mode == .common)
    #expect(publisher.options == nil)
  }

  @Test func ticksOnceConnectedAndUntilDisconnected() {
    let publisher = publisher
    let tracker = Tracker(.unlimited)
    publisher.subscribe(tracker)
    let other = Tracker(.unlimited)
    let otherPublisher = self.publisher
    otherPublisher.subscribe(other)
    let otherConnection = otherPublisher.connect()
    run { count(other) >= 3 }
    #expect(tracker.history.events == [.subscription("Timer")])
    let connection = publisher.connect()
    run { count(tracker) >= 3 }
    connection.cancel()
    let ticks = count(tracker)
    let otherTicks = count(other)
    run { count(other) >= otherTicks + 3 }
    #expect(count(tracker) == ticks)
    otherConnection.cancel()
  }

  @Test func theFirstDateComesAnIntervalAfterConnecting() {
    let hourly = Timer.publish(every: 3_600, tolerance: 0, on: .current, in: mode)
    let tracker = Tracker(.unlimited)
    hourly.subscribe(tracker)
    let connection = hourly.connect()
    let other = Tracker(.unlimited)
    let otherPublisher = publisher
    otherPublisher.subscribe(other)
    let otherConnection = otherPublisher.connect()
    run { count(other) >= 3 }
    #expect(tracker.history.events == [.subscription("Timer")])
    otherConnection.cancel()
    connection.cancel()
  }

  @Test func eachSubscriberGetsWhatItAsksFor() {
    let publisher = publisher
    let trackers = [Tracker(.unlimited), Tracker(.max(2)), Tracker(), Tracker(.max(1), perValue: .max(1))]
    for tracker in trackers { publisher.subscribe(tracker) }
    let connection = publisher.connect()
    run { count(trackers[0]) >= 5 }
    #expect(count(trackers[1]) == 2)
    #expect(count(trackers[2]) == 0)
    #expect(count(trackers[3]) == count(trackers[0]))
    connection.cancel()
  }

  @Test func aSubscriberCancelsForItselfAlone() {
    let publisher = publisher
    let first = Tracker(.unlimited)
    let second = Tracker(.unlimited)
    first.onValue = { [unowned first] _ in first.subscription?.cancel() }
    publisher.subscribe(first)
    publisher.subscribe(second)
    let connection = publisher.connect()
    run { count(second) >= 3 }
    #expect(count(first) == 1)
    connection.cancel()
  }

  @Test func connectingTwiceTicksOnce() {
    let publisher = publisher
    let tracker = Tracker(.unlimited)
    publisher.subscribe(tracker)
    let first = publisher.connect()
    let second = publisher.connect()
    #expect(first as AnyObject === second as AnyObject)
    first.cancel()
    second.cancel()
  }

  @Test func canBeConnectedAnew() {
    let publisher = publisher
    let first = publisher.connect()
    first.cancel()
    let tracker = Tracker(.unlimited)
    publisher.subscribe(tracker)
    let second = publisher.connect()
    first.cancel()
    run { count(tracker) >= 2 }
    second.cancel()
  }

  @Test func startsByItselfWithAutoconnect() {
    var ticks = 0
    let subscription = publisher.autoconnect().sink { _ in ticks += 1 }
    run { ticks >= 2 }
    subscription.cancel()
  }

  @Test(arguments: [true, false]) func releasesEverything(endsByConnection: Bool) {
    weak var weakPublisher: Timer.TimerPublisher?
    var released = 0
    var kept: (any Subscription)?
    do {
      let publisher = publisher
      weakPublisher = publisher
      let tracker = Tracker(.unlimited)
      tracker.onDeinit = { released += 1 }
      publisher.subscribe(tracker)
      kept = tracker.subscription
      let connection = publisher.connect()
      if !endsByConnection { tracker.subscription?.cancel() }
      connection.cancel()
    }
    #expect(weakPublisher == nil)
    #expect(released == 1)
    withExtendedLifetime(kept) {}
  }
}
