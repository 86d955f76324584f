import ReactiveCore
import ReactiveTestSupport
import Testing

private final class Model: @unchecked Sendable {
  // The property is safe to use from several threads.
  @Published var state: Int

  init(_ state: Int = 0) {
    _state = Published(initialValue: state)
  }
}

@Suite struct PublishedTests {
  @Test func tellsBeforeThePropertyChanges() {
    let model = Model(1)
    var seen: [[Int]] = []
    let subscription = model.$state.sink { seen.append([$0, model.state]) }
    model.state = 2
    model.state += 5
    #expect(seen == [[1, 1], [2, 1], [7, 2]])
    #expect(model.state == 7)
    subscription.cancel()
    model.state = 8
    #expect(seen.count == 3)
    #expect(model.state == 8)
  }

  @Test func deliversWhatIsAskedForAndTheLatestWhenAskedAgain() {
    let model = Model()
    let subscriber = TrackingSubscriber<Int, Never>()
    model.$state.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("PublishedSubject")])
    subscriber.subscription?.request(.max(2))
    for number in 1...3 { model.state = number }
    #expect(subscriber.history.take() == [.value(0), .value(1)])
    subscriber.subscription?.request(.max(10))
    model.state = 42
    #expect(subscriber.history.take() == [.value(3), .value(42)])
    subscriber.subscription?.cancel()
    subscriber.subscription?.request(.max(1))
    model.state = 43
    #expect(subscriber.history.take() == [])
  }

  @Test func laterSubscribersGetTheCurrentValue() {
    let model = Model()
    model.state = 5
    let early = TrackingSubscriber<Int, Never>(.unlimited)
    model.$state.subscribe(early)
    model.state = 6
    let late = TrackingSubscriber<Int, Never>(.unlimited)
    model.$state.subscribe(late)
    #expect(early.history.take() == [.subscription("PublishedSubject"), .value(5), .value(6)])
    #expect(late.history.take() == [.subscription("PublishedSubject"), .value(6)])
  }

  @Test func aValueSetBySubscribersIsPublishedNextAndRemains() {
    let model = Model()
    var seen: [Int] = []
    let first = model.$state.sink { if $0 == 1 { model.state = 2 } }
    let second = model.$state.sink { seen.append($0) }
    model.state = 1
    #expect(seen == [0, 1, 2])
    #expect(model.state == 2)
    first.cancel()
    second.cancel()
  }

  @Test func sendingToItselfNeedsNoMoreStackThanOnce() {
    let model = Model()
    let subscription = model.$state.sink { if $0 < 200_000 { model.state = $0 + 1 } }
    #expect(model.state == 200_000)
    model.state = 1
    #expect(model.state == 200_000)
    subscription.cancel()
  }

  @Test func copyingThePublisherOverAnotherHasNoEffect() {
    let (first, second) = (Model(1), Model(2))
    first.$state = second.$state
    #expect(first.state == 1)
    second.state = 3
    #expect(first.state == 1)
  }

  @Test func showsItsSubscription() {
    let model = Model()
    let subscriber = TrackingSubscriber<Int, Never>()
    model.$state.subscribe(subscriber)
    let mirror = Mirror(reflecting: subscriber.subscription!)
    #expect(mirror.children.map(\.label) == ["parent", "downstream", "demand", "subject"])
  }

  @Test func releasesValuesAndSubscribers() {
    final class Token {}
    final class Holder {
      @Published var token = Token()
    }
    weak var old: Token?
    weak var current: Token?
    var isReleased = false
    do {
      let holder = Holder()
      let subscriber = TrackingSubscriber<ObjectIdentifier, Never>(.unlimited)
      subscriber.onDeinit = { isReleased = true }
      holder.$token.map { ObjectIdentifier($0) }.subscribe(subscriber)
      old = holder.token
      holder.token = Token()
      current = holder.token
      #expect(old == nil)
      #expect(current != nil)
      subscriber.subscription?.cancel()
    }
    #expect(current == nil)
    #expect(isReleased)
  }

  @Test func settingAndSubscribingMayRace() async {
    for _ in 0..<50 {
      let model = Model()
      let subscribers = UncheckedBox((0..<4).map { _ in TrackingSubscriber<Int, Never>(.unlimited) })
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for number in 1...200 { model.state = number } }
        for index in 0..<4 {
          group.addTask { model.$state.subscribe(subscribers.value[index]) }
        }
        group.addTask { for _ in 0..<200 { _ = model.state } }
      }
      #expect(model.state == 200)
      for subscriber in subscribers.value {
        let first = subscriber.history.events[1]
        let numbers = (0...200).map { Happening.value($0) }
        let start = numbers.firstIndex(of: first)!
        #expect(Array(subscriber.history.events.dropFirst()) == Array(numbers[start...]))
      }
    }
  }

  @Test func theValueSetLastByRacingThreadsIsTheOnePublishedLast() async {
    for _ in 0..<200 {
      let model = Model()
      let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
      model.$state.subscribe(subscriber)
      await withTaskGroup(of: Void.self) { group in
        for sender in 1...4 {
          group.addTask { for number in 1...20 { model.state = sender * 100 + number } }
        }
      }
      #expect(subscriber.history.events.count == 82)
      #expect(subscriber.history.events.last == .value(model.state))
    }
  }

  @Test func aThreadReadsWhatItHasSet() async {
    let model = Model()
    let subscription = model.$state.sink { _ in }
    let other = Model()
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 1...5000 {
          model.state = number
          #expect(model.state == number)
        }
      }
      group.addTask {
        for _ in 1...5000 { _ = model.$state.sink { other.state = $0 } }
      }
    }
    subscription.cancel()
  }
}
