import Foundation
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct NotificationPublisherTests {
  typealias Tracker = TrackingSubscriber<Notification, Never>

  static let name = Notification.Name("test")
  let center = NotificationCenter()

  func post(_ number: Int, object: AnyObject? = nil) {
    center.post(name: Self.name, object: object, userInfo: ["number": number])
  }

  func numbers(_ tracker: Tracker) -> [Int] {
    tracker.history.take().compactMap { event in
      guard case .value(let value) = event, let notification = value.base as? Notification else { return nil }
      return notification.userInfo?["number"] as? Int
    }
  }

  @Test func dropsWhatIsNotAskedFor() {
    let tracker = Tracker()
    center.publisher(for: Self.name).subscribe(tracker)
    #expect(tracker.history.take() == [.subscription("NotificationCenter Observer")])
    post(1)
    #expect(numbers(tracker) == [])
    tracker.subscription?.request(.max(2))
    for number in 2...4 { post(number) }
    #expect(numbers(tracker) == [2, 3])
    tracker.demandPerValue = .max(1)
    tracker.subscription?.request(.max(1))
    for number in 5...7 { post(number) }
    #expect(numbers(tracker) == [5, 6, 7])
  }

  @Test func deliversOneNameOfOneObject() {
    let object = NSObject()
    let tracker = Tracker(.unlimited)
    center.publisher(for: Self.name, object: object).subscribe(tracker)
    post(1)
    post(2, object: NSObject())
    post(3, object: object)
    center.post(name: Notification.Name("other"), object: object)
    #expect(numbers(tracker) == [3])
  }

  @Test func observesFromTheSubscriptionOnAndNoMoreAfterCancellation() {
    let tracker = Tracker(.unlimited)
    tracker.onValue = { [unowned tracker] in
      if $0.userInfo?["number"] as? Int == 2 { tracker.subscription?.cancel() }
    }
    let publisher = center.publisher(for: Self.name)
    post(0)
    publisher.subscribe(tracker)
    for number in 1...3 { post(number) }
    tracker.subscription?.request(.max(1))
    tracker.subscription?.cancel()
    post(4)
    #expect(numbers(tracker) == [1, 2])
  }

  @Test func whatIsPostedByTheSubscriberComesNext() {
    let tracker = Tracker(.unlimited)
    var depth = 0
    tracker.onValue = { notification in
      depth += 1
      #expect(depth == 1)
      let number = notification.userInfo?["number"] as? Int ?? 0
      if number < 1000 { post(number + 1) }
      depth -= 1
    }
    center.publisher(for: Self.name).subscribe(tracker)
    post(1)
    #expect(numbers(tracker) == Array(1...1000))
  }

  @Test func deliversSeriallyAndExactlyWhatIsAskedForWhenManyThreadsPost() {
    let tracker = Tracker(.max(500))
    let calls = Atomic<Int>(0)
    tracker.onValue = { _ in
      #expect(calls.add(1, ordering: .relaxed).newValue == 1)
      calls.subtract(1, ordering: .relaxed)
    }
    center.publisher(for: Self.name).subscribe(tracker)
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      for number in 0..<250 { post(thread * 1000 + number) }
    }
    var last = [-1, -1, -1, -1]
    let received = numbers(tracker)
    #expect(received.count == 500)
    for number in received {
      #expect(number % 1000 > last[number / 1000])
      last[number / 1000] = number % 1000
    }
  }

  @Test func isEqualToOneOfTheSameCentreNameAndObject() {
    let object = NSObject()
    let publisher = center.publisher(for: Self.name, object: object)
    #expect(publisher == NotificationCenter.Publisher(center: center, name: Self.name, object: object))
    #expect(publisher != center.publisher(for: Self.name))
    #expect(publisher != center.publisher(for: Notification.Name("other"), object: object))
    #expect(publisher != NotificationCenter().publisher(for: Self.name, object: object))
  }

  @Test func aCancelledOrForgottenSubscriptionHoldsNothing() {
    weak var cancelled: Tracker?
    weak var forgotten: Tracker?
    var kept: (any Subscription)?
    do {
      let tracker = Tracker(.unlimited)
      cancelled = tracker
      center.publisher(for: Self.name).subscribe(tracker)
      kept = tracker.subscription
      tracker.subscription?.cancel()
      let other = Tracker(.unlimited)
      forgotten = other
      center.publisher(for: Self.name).subscribe(other)
      other.subscription = nil
    }
    #expect(cancelled == nil)
    #expect(forgotten == nil)
    withExtendedLifetime(kept) {}
  }

  @Test func describesItself() throws {
    let tracker = Tracker(.max(3))
    center.publisher(for: Self.name).subscribe(tracker)
    let mirror = Mirror(reflecting: try #require(tracker.subscription))
    #expect(mirror.children.map(\.label) == ["center", "name", "object", "demand"])
    #expect(mirror.descendant("demand") as? Subscribers.Demand == .max(3))
  }
}
