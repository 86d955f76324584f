import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AnySubscriberTests {
  @Test func passesEverythingOnUnderTheSameIdentity() {
    let subscriber = TrackingSubscriber<Int, Oops>(.max(3), perValue: .max(2))
    let erased = AnySubscriber(subscriber)
    #expect(erased.combineIdentifier == subscriber.combineIdentifier)
    #expect(erased.description == "TrackingSubscriber")
    erased.receive(subscription: ManualSubscription())
    #expect(erased.receive(1) == .max(2))
    erased.receive(completion: .finished)
    #expect(subscriber.history.events == [.subscription("Manual"), .value(1), .finished])
  }

  @Test func erasingTwiceAddsNoLayer() {
    let once = AnySubscriber(
      Subscribers.Sink<Int, Never>(receiveCompletion: { _ in }, receiveValue: { _ in }))
    let twice = AnySubscriber(once)
    #expect(twice.combineIdentifier == once.combineIdentifier)
    #expect(twice.description == "Sink")
    func boxes(_ subscriber: AnySubscriber<Int, Never>) -> ObjectIdentifier {
      ObjectIdentifier(unsafeBitCast(subscriber, to: AnyObject.self))
    }
    #expect(boxes(once) == boxes(twice))
  }

  @Test func isMadeOfFunctions() {
    var log: [String] = []
    let subscriber = AnySubscriber<Int, Oops>(
      receiveSubscription: { log.append("\($0)") },
      receiveValue: {
        log.append("\($0)")
        return .max(4)
      },
      receiveCompletion: { log.append("\($0)") })
    subscriber.receive(subscription: ManualSubscription())
    #expect(subscriber.receive(9) == .max(4))
    subscriber.receive(completion: .finished)
    #expect(log == ["Manual", "9", "finished"])
    #expect(subscriber.description == "Anonymous AnySubscriber")
  }

  @Test func withoutFunctionsItDoesNothing() {
    let subscriber = AnySubscriber<Int, Oops>()
    subscriber.receive(subscription: ManualSubscription(onRequest: { _ in Issue.record("requested") }))
    #expect(subscriber.receive(1) == .none)
    subscriber.receive(completion: .finished)
  }

  @Test func sendsToASubject() {
    let subject = PassthroughSubject<Int, Oops>()
    let downstream = TrackingSubscriber<Int, Oops>(.max(1))
    subject.subscribe(downstream)
    let source = ManualPublisher<Int, Oops>()
    let subscriber = AnySubscriber(subject)
    #expect(subscriber.description == "Subject")
    source.subscribe(subscriber)
    #expect(source.history.take() == [.requested(.unlimited)])
    #expect(source.send(1) == .none)
    source.send(2)
    source.send(completion: .finished)
    #expect(downstream.history.events == [.subscription("PassthroughSubject"), .value(1), .finished])
  }
}
