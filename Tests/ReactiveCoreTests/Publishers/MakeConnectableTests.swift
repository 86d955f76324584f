import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MakeConnectableTests {
  @Test func waitsToBeConnected() {
    let source = ManualPublisher<Int, Never>()
    let connectable = source.makeConnectable()
    let first = TrackingSubscriber<Int, Never>(.max(2))
    let second = TrackingSubscriber<Int, Never>(.unlimited)
    connectable.subscribe(first)
    connectable.subscribe(second)
    #expect(source.subscriber == nil)
    let connection = connectable.connect()
    #expect(source.history.take() == [.requested(.unlimited)])
    for number in 1...3 { source.send(number) }
    #expect(first.history.take() == [.subscription("Multicast"), .value(1), .value(2)])
    #expect(second.history.take() == [.subscription("Multicast"), .value(1), .value(2), .value(3)])
    connection.cancel()
    source.send(4)
    #expect(source.history.take() == [.cancelled])
    #expect(first.history.take() == [])
    #expect(second.history.take() == [])
  }

  @Test func theEndReachesEveryone() {
    let connectable = (1...2).publisher.makeConnectable()
    let subscribers = [TrackingSubscriber<Int, Never>(.unlimited), TrackingSubscriber(.unlimited)]
    for subscriber in subscribers { connectable.subscribe(subscriber) }
    let connection = connectable.connect()
    for subscriber in subscribers {
      #expect(subscriber.history.take() == [.subscription("Multicast"), .value(1), .value(2), .finished])
    }
    connection.cancel()
  }

  @Test func canConnectByItself() {
    let source = ManualPublisher<Int, Never>()
    let shared = source.makeConnectable().autoconnect()
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    shared.subscribe(subscriber)
    source.send(5)
    subscriber.subscription?.cancel()
    #expect(subscriber.history.events.last == .value(5))
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func mayBeDisconnectedWithinAValue() {
    let source = ManualPublisher<Int, Never>()
    let connectable = source.makeConnectable()
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    connectable.subscribe(subscriber)
    let connection = connectable.connect()
    subscriber.onValue = { _ in connection.cancel() }
    source.send(1)
    source.send(2)
    source.send(completion: .finished)
    #expect(subscriber.history.events == [.subscription("Multicast"), .value(1)])
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
    subscriber.onValue = { _ in }
  }
}
