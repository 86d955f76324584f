import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// A broker that sends unlimited frames that no demand limits, or replies that no request asked for.
@Suite struct UnboundedBrokerTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  private func subscribed(
    _ demand: Subscribers.Demand = .none
  ) throws -> Recorder<TopicEvent<TopicRecord>> {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: demand)
    client.topic("t").events(including: .producers).subscribe(recorder)
    let _: Subscribe = try broker.takeOnly()
    broker.send(Subscribed(epoch: 7, nextOffset: 0, liveOffset: 0), 1)
    broker.settle()
    return recorder
  }

  @Test func lagsWithoutDemandBecomeOne() throws {
    let recorder = try subscribed()
    for next in 1...1_000 { broker.send(Lag(missed: 2, nextOffset: UInt64(2 * next)), 1) }
    broker.settle()
    recorder.subscription?.request(.max(1_000))
    broker.settle()
    #expect(recorder.history == [.subscription, .lagged(2_000)])
  }

  @Test func numbersOfProducersWithoutDemandBecomeTheLast() throws {
    let recorder = try subscribed()
    for count in 1...1_000 { broker.send(Producers(count: UInt32(count)), 1) }
    broker.settle()
    recorder.subscription?.request(.max(1_000))
    broker.settle()
    #expect(recorder.history == [.subscription, .producers(1_000)])
  }

  @Test func aNumberOfProducersThatComesBackWhileItWaitsIsNoEvent() throws {
    let recorder = try subscribed(.max(1))
    for count in [1, 2, 3, 2] as [UInt32] { broker.send(Producers(count: count), 1) }
    broker.settle()
    recorder.subscription?.request(.max(10))
    broker.send(Producers(count: 0), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .producers(2), .producers(0)])
  }

  @Test func lagsOfAPatternsTopicsAreJoinedForEachTopic() {
    let lag = { (name: String, missed: UInt64, next: UInt64) in
      TopicMark.topic(name, .lagged(missed: missed, nextOffset: next))
    }
    #expect(lag("a", 1, 4).joined(with: lag("a", 2, 9)) == lag("a", 3, 9))
    #expect(lag("a", .max, 4).joined(with: lag("a", 2, 9)) == lag("a", .max, 9))
    #expect(lag("a", 1, 4).joined(with: lag("b", 2, 9)) == nil)
    #expect(TopicMark.lagged(missed: 1, nextOffset: 4).joined(with: .live(nextOffset: 4)) == nil)
  }

  @Test func topicsThatComeAndGoWithoutDemandAreNoEvents() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .none)
    client.topics(matching: "t.*").events.subscribe(recorder)
    let _: SubscribePattern = try broker.takeOnly()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(SelectTopic(number: 0), 1)
    func matched(_ number: UInt32, _ topic: String) {
      broker.send(
        Matched(number: number, topic: topic, place: Subscribed(epoch: 5, nextOffset: 0, liveOffset: 0)), 1)
    }
    matched(9, "t.stays")
    for number in 1...1_000 {
      matched(1, "t.\(number)")
      matched(2, "t.same")
      broker.send(Unmatched(number: 1), 1)
      broker.send(Unmatched(number: 2), 1)
      if number % 100 == 0 { broker.settle() }
    }
    broker.settle()
    recorder.subscription?.request(.max(1))
    broker.settle()
    // A topic that the subscriber knows is reported.
    broker.send(Unmatched(number: 9), 1)
    recorder.subscription?.request(.max(1_000))
    broker.settle()
    #expect(
      recorder.history == [
        .subscription, .topic("t.stays", .matched(nextOffset: 0)), .topic("t.stays", .deleted),
      ])
  }

  @Test func pingsOfABrokerThatReadsNoAnswersNeedNoMemory() throws {
    let count: UInt64 = 40_000
    broker.stream?.readsPaused = true
    for first in stride(from: 1, through: count, by: 1_000) {
      broker.send((first..<first + 1_000).flatMap { Ping(token: $0).encoded(stream: 0) })
      broker.settle()
    }
    broker.stream?.readsPaused = false
    broker.world.run(for: .seconds(1))
    let tokens = try broker.takeReceived().map { try $0.decode(Pong.self).token }
    #expect(tokens.count < count && tokens.last == count)
    #expect(tokens == tokens.sorted())
  }

  @Test func anAnswerOfAnotherKindEndsTheConnection() throws {
    let failure = Box<ClientError?>(nil)
    client.deleteTopic("t") { if case .failure(let error) = $0 { failure.value = error } }
    let _: TopicDelete = try broker.takeOnly()
    broker.send(Authenticated(identity: "", expires: Authenticated.never), 1)
    #expect(try broker.takeOnly(Fault.self).code == .unexpectedFrame)
    #expect(failure.value?.code == .protocolViolation)
    #expect(failure.value?.brokerCode == ErrorCode.unexpectedFrame.rawValue)
    #expect(client.failure?.code == .protocolViolation)
  }

  /// The protocol page requires clients to retry subscriptions that a limit has ended.
  @Test func aSubscriptionThatALimitEndsIsOpenedAgainWhereItWas() throws {
    let recorder = try subscribed(.max(3))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a"]))
    var times: [MonotonicTime] = []
    for _ in 0..<3 {
      broker.send(Fault(code: .limitReached, message: "no memory"), 1)
      broker.settle()
      times.append(broker.world.now)
      _ = broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty }
      let again: Subscribe = try broker.takeOnly()
      #expect(again.start == .offset(1) && again.epoch == 7 && again.grantedThrough == 2)
    }
    #expect(times[2] - times[1] > times[1] - times[0])
    broker.send(Subscribed(epoch: 7, nextOffset: 1, liveOffset: 1), 1)
    broker.send(deliver(stream: 1, firstOffset: 1, ["b"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b")])
  }

  @Test func aSubscriptionThatWasNeverOpenFails() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    let _: Subscribe = try broker.takeOnly()
    broker.send(Fault(code: .limitReached, message: "no memory"), 1)
    broker.settle()
    #expect(recorder.completion == .failure(.limitReached))
  }
}
