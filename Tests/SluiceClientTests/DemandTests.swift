import ReactiveCore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// How a subscriber's demand is sent in frames, and frames are delivered as values.
@Suite struct DemandTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client()
  }

  // MARK: Requests to the broker

  @Test func subscribingCarriesTheFirstDemand() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(5))
    let topic = client.topic("a.b", from: .last(7), lag: .fail)
    let frame = try broker.subscribe(recorder, to: topic)
    #expect(frame == Subscribe(topic: "a.b", start: .last(7), lag: .fail, grantedThrough: 5))
    #expect(recorder.history == [.subscription])
  }

  @Test func withoutDemandNothingIsGranted() throws {
    let recorder = Recorder<TopicRecord>(initial: .none)
    #expect(try broker.subscribe(recorder, to: client.topic("t")).grantedThrough == 0)
    recorder.subscription?.request(.max(1))
    recorder.subscription?.request(.max(2))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 3)
  }

  @Test func unlimitedIsAllOnes() throws {
    let recorder = Recorder<TopicRecord>(initial: .unlimited)
    #expect(try broker.subscribe(recorder, to: client.topic("t")).grantedThrough == Credit.unlimited)
    recorder.subscription?.request(.max(1))
    #expect(broker.takeReceived().isEmpty)
  }

  @Test func demandSaturatesToUnlimited() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(.max))
    #expect(try broker.subscribe(recorder, to: client.topic("t")).grantedThrough == UInt64(Int.max))
    recorder.subscription?.request(.max(1))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == Credit.unlimited)
  }

  @Test func demandReturnedPerValueIsOneFramePerBatch() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(3)) { _, _ in .max(1) }
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 6)
    #expect(recorder.values == ["a", "b", "c"])
  }

  @Test func batchesThatComeTogetherAreAnsweredTogether() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(4)) { _, _ in .max(2) }
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(
      deliver(stream: 1, firstOffset: 0, ["a", "b"]) + deliver(stream: 1, firstOffset: 2, ["c", "d"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 12)
  }

  @Test func requestsFromWithinAValueCountOnce() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(2)) { recorder, _ in
      recorder.subscription?.request(.max(3))
      return .max(1)
    }
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 2 + 2 * 3 + 2 * 1)
  }

  @Test func aLastValueWithoutNewDemandCostsNoFrame() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(2))
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    #expect(broker.takeReceived().isEmpty)
  }

  // MARK: Cancelling

  @Test func cancellingWithinAValueEndsTheBatch() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(9)) { recorder, _ in
      if recorder.values.count == 2 { recorder.subscription?.cancel() }
      return .max(1)
    }
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(
      deliver(stream: 1, firstOffset: 0, ["a", "b", "c"]) + deliver(stream: 1, firstOffset: 3, ["d"]))
    _ = try broker.takeOnly(Cancel.self)
    #expect(recorder.history == [.subscription, .value("a"), .value("b")])
    broker.send(deliver(stream: 1, firstOffset: 4, ["e"]))
    broker.send(Complete(.finished), 1)
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b")])
    #expect(client.failure == nil)
  }

  @Test func cancellingInReceiveSubscriptionOpensNothing() throws {
    final class Refuser: Subscriber {
      func receive(subscription: any Subscription) {
        subscription.request(.max(1))
        subscription.cancel()
        subscription.request(.max(1))
      }
      func receive(_ input: TopicRecord) -> Subscribers.Demand { .none }
      func receive(completion: Subscribers.Completion<ClientError>) { Issue.record("heard after cancel()") }
    }
    client.topic("t").subscribe(Refuser())
    #expect(broker.takeReceived().isEmpty)
  }

  @Test func afterCancelNothingIsAskedFor() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t"))
    recorder.subscription?.cancel()
    recorder.subscription?.request(.max(5))
    recorder.subscription?.cancel()
    _ = try broker.takeOnly(Cancel.self)
  }

  @Test func releasingTheCancellableCancels() throws {
    var cancellable: AnyCancellable? = client.topic("t").sink { _ in
    } receiveValue: { _ in
    }
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.settle()
    #expect(cancellable != nil)
    cancellable = nil
    _ = try broker.takeOnly(Cancel.self)
  }

  @Test func aStreamIsUsedAgainAfterCancelled() throws {
    let first = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(first, to: client.topic("t"))
    first.subscription?.cancel()
    _ = broker.takeReceived()
    let second = Recorder<TopicRecord>(initial: .max(1))
    client.topic("t").subscribe(second)
    #expect(broker.takeReceived().map(\.stream) == [2])
    broker.send(Cancelled(), 1)
    broker.settle()
    let third = Recorder<TopicRecord>(initial: .max(1))
    client.topic("t").subscribe(third)
    #expect(broker.takeReceived().map(\.stream) == [1])
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["x"]))
    broker.settle()
    #expect(third.values == ["x"])
    #expect(first.values.isEmpty)
  }

  // MARK: Completion

  @Test func completionNeedsNoDemand() throws {
    let recorder = Recorder<TopicRecord>(initial: .none)
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .finished])
  }

  @Test func aProducersFailureIsTyped() throws {
    var error: ClientError?
    let cancellable = client.topic("t").eraseToAnyPublisher().sink { completion in
      if case .failure(let failure) = completion { error = failure }
    } receiveValue: { _ in
    }
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(Complete(.failure(code: ErrorCode(rawValue: 1_234), message: "no more paper")), 1)
    broker.settle()
    withExtendedLifetime(cancellable) {
      #expect(error?.code == .topicFailed)
      #expect(error?.message == "no more paper")
      #expect(error?.topic == "t")
      #expect(error?.brokerCode == 1_234)
    }
  }

  @Test func aRefusalIsTyped() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    _ = broker.takeReceived()
    broker.send(Fault(code: .lagged, message: "gone"), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .failure(.lagged)])
  }

  @Test func aNameThatIsNoneIsRefusedHere() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("no spaces").subscribe(recorder)
    #expect(broker.takeReceived().isEmpty)
    #expect(recorder.history == [.subscription, .failure(.invalidTopic)])
  }

  @Test func moreStreamsThanTheBrokerTakesAreRefusedHere() throws {
    let recorders = (0..<4).map { _ in Recorder<TopicRecord>(initial: .max(1)) }
    for recorder in recorders { client.topic("t").subscribe(recorder) }
    #expect(broker.takeReceived().map(\.stream) == [1, 2, 3])
    #expect(recorders[3].history == [.subscription, .failure(.limitReached)])
    #expect(client.failure == nil)
  }

  // MARK: Prefetching

  @Test func prefetchingAsksAheadAndKeepsWhatIsNotAskedFor() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    let topic = client.topic("t", prefetch: .keepFull(4))
    #expect(try broker.subscribe(recorder, to: topic).grantedThrough == 4)
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c", "d"]))
    #expect(broker.takeReceived().isEmpty)
    #expect(recorder.values == ["a"])
    recorder.subscription?.request(.max(2))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 7)
    #expect(recorder.values == ["a", "b", "c"])
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(recorder.completion == nil)
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history.suffix(2) == [.value("d"), .finished])
  }

  @Test func aRequestBeyondThePrefetchIsGrantedWhole() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(10))
    let topic = client.topic("t", prefetch: .keepFull(4))
    #expect(try broker.subscribe(recorder, to: topic).grantedThrough == 10)
  }

  @Test func whatWasPrefetchedIsDeliveredBeforeTheConnectionsEnd() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(4)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.close()
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a")])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .failure(.cutOff)])
  }

  @Test func demandFromWithinAValueIsMetFromWhatWasPrefetched() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1)) { recorder, _ in
      recorder.values.count < 3 ? .max(1) : .none
    }
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(8)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c", "d"]))
    broker.settle()
    #expect(recorder.values == ["a", "b", "c"])
  }

  @Test func aCancelledSubscriberLeavesItsPrefetchBehind() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(2)) { recorder, _ in
      recorder.subscription?.cancel()
      return .none
    }
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(8)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c", "d"]))
    _ = try broker.takeOnly(Cancel.self)
    #expect(recorder.values == ["a"])
  }

  // MARK: Events between records

  private func events(_ recorder: Recorder<TopicEvent<TopicRecord>>) throws -> Subscribe {
    client.topic("t").events.subscribe(recorder)
    let frame: Subscribe = try broker.takeOnly()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 2), 1)
    return frame
  }

  @Test func eventsComeInTheirPlaces() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    _ = try events(recorder)
    broker.send(
      deliver(stream: 1, firstOffset: 0, ["a", "b"]) + Live(nextOffset: 2).encoded(stream: 1)
        + Lag(missed: 3, nextOffset: 5).encoded(stream: 1) + deliver(stream: 1, firstOffset: 5, ["f"])
        + Complete(.finished).encoded(stream: 1))
    broker.settle()
    #expect(
      recorder.history == [
        .subscription, .value("a"), .value("b"), .live, .lagged(3), .value("f"), .finished,
      ])
  }

  @Test func eventsCountAgainstDemand() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(2))
    #expect(try events(recorder).grantedThrough == 2)
    // The marker uses demand only on the client's side.
    broker.send(Live(nextOffset: 0).encoded(stream: 1) + deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .live, .value("a")])
    _ = broker.takeReceived()
    // One of the three additional values has arrived already.
    recorder.subscription?.request(.max(3))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 4)
    #expect(recorder.history == [.subscription, .live, .value("a"), .value("b")])
  }

  @Test func anEventWithoutDemandWaits() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .none)
    _ = try events(recorder)
    broker.send(Live(nextOffset: 0), 1)
    broker.settle()
    #expect(recorder.history == [.subscription])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history == [.subscription, .live])
  }
}
