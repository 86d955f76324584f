import SluiceIO
import SluiceLog
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The frames on the stream of a subscription to a pattern.
@Suite struct PatternTests {
  /// A frame received on the stream, with the topic's name.
  enum Heard: Equatable {
    case subscribed
    case matched(String, at: UInt64)
    case unmatched(String)
    /// SELECT_TOPIC 0, followed by LIVE.
    case complete
    case allLive
    case live(String)
    case records(String, Range<UInt64>)
    case lag(String, UInt64)
    case ended(String)
    case fault(ErrorCode)
    case cancelled
  }

  /// - Throws: if a frame refers to an unknown topic.
  private func heard(_ client: ScriptedClient, on stream: UInt32 = 1) throws -> [Heard] {
    var names: [UInt32: String] = [:]
    var subject: UInt32 = 0
    var heard: [Heard] = []
    func name() throws -> String { try #require(names[subject]) }
    for frame in client.frames(on: stream) {
      switch frame.header.type {
      case .subscribed: heard.append(.subscribed)
      case .matched:
        let matched = try frame.decoded(Matched.self)
        #expect(names[matched.number] == nil && matched.number > 0)
        names[matched.number] = matched.topic
        heard.append(.matched(matched.topic, at: matched.place.nextOffset))
      case .unmatched:
        let number = try frame.decoded(Unmatched.self).number
        let gone = names.removeValue(forKey: number)
        heard.append(.unmatched(try #require(gone)))
      case .selectTopic:
        let number = try frame.decoded(SelectTopic.self).number
        #expect(number != subject || number == 0, "a SELECT_TOPIC that changes nothing")
        subject = number
        if number == 0, !heard.contains(.complete) { heard.append(.complete) }
      case .live: heard.append(subject == 0 ? .allLive : .live(try name()))
      case .deliver:
        let header = try frame.body.withUnsafeBytes { try DeliverHeader.decode($0).header }
        let range = header.firstOffset..<header.firstOffset + UInt64(header.count)
        if case .records(try name(), let before)? = heard.last, before.upperBound == range.lowerBound {
          heard[heard.count - 1] = .records(try name(), before.lowerBound..<range.upperBound)
        } else {
          heard.append(.records(try name(), range))
        }
      case .lag: heard.append(.lag(try name(), try frame.decoded(Lag.self).missed))
      case .complete: heard.append(.ended(try name()))
      case .error: heard.append(.fault(try frame.decoded(Fault.self).code))
      case .cancelled: heard.append(.cancelled)
      default: Issue.record("\(frame)")
      }
    }
    return heard
  }

  private func publish(
    _ count: Int, to topic: String, from sequence: UInt64 = 0, _ client: ScriptedClient, stream: UInt32
  ) {
    if sequence == 0 { client.send(PublishOpen(topic: topic, acknowledgement: .none), stream: stream) }
    client.publish([[UInt8]](repeating: [1], count: count), from: sequence, stream: stream)
  }

  @Test func topicsThatAreThereAndTopicsThatCome() throws {
    let small = try SmallWorld()
    let (producer, subscriber) = (small.connect(), small.connect())
    publish(2, to: "a.x", producer, stream: 1)
    publish(1, to: "b.x", producer, stream: 2)
    small.settle()
    subscriber.send(SubscribePattern(pattern: "a.*", grantedThrough: .max), stream: 1)
    small.settle()
    #expect(
      try heard(subscriber) == [
        .subscribed, .matched("a.x", at: 0), .records("a.x", 0..<2), .live("a.x"), .complete, .allLive,
      ])
    publish(3, to: "a.y", producer, stream: 3)
    publish(1, to: "a.x", from: 2, producer, stream: 1)
    publish(1, to: "b.y", producer, stream: 4)
    small.settle()
    let rest = try heard(subscriber).dropFirst(6)
    #expect(rest.filter { $0 == .records("a.x", 2..<3) }.count == 1)
    // A newly created topic is read from its first record, regardless of the subscription's start.
    let records = try heard(subscriber).reduce(UInt64(0)) {
      if case .records("a.y", let range) = $1 { $0 + UInt64(range.count) } else { $0 }
    }
    #expect(records == 3)
    #expect(rest.contains(.live("a.y")))
  }

  @Test func nothingMatchesYet() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.send(SubscribePattern(pattern: ">", start: .new, grantedThrough: .max), stream: 1)
    small.settle()
    #expect(try heard(client) == [.subscribed, .complete, .allLive])
    publish(2, to: "_inbox.a", client, stream: 2)
    publish(2, to: "a", client, stream: 3)
    small.settle()
    #expect(
      try heard(client).dropFirst(3).filter { if case .live = $0 { false } else { true } } == [
        .matched("a", at: 0), .records("a", 0..<2),
      ])
  }

  @Test func oneDemandGoesRound() throws {
    let small = try SmallWorld()
    let (producer, subscriber) = (small.connect(), small.connect())
    for (index, topic) in ["a", "b", "c"].enumerated() {
      publish(index == 0 ? 100 : 2, to: topic, producer, stream: UInt32(index + 1))
    }
    small.settle()
    subscriber.send(SubscribePattern(pattern: "*", grantedThrough: 0), stream: 1)
    small.settle()
    #expect(
      try heard(subscriber) == [
        .subscribed, .matched("a", at: 0), .matched("b", at: 0), .matched("c", at: 0), .complete,
      ])
    for granted in 1...9 as ClosedRange<UInt64> {
      subscriber.send(Demand(grantedThrough: granted), stream: 1)
      small.settle(.milliseconds(5))
    }
    let records = try heard(subscriber).filter { if case .records = $0 { true } else { false } }
    #expect(
      records == [
        .records("a", 0..<1), .records("b", 0..<1), .records("c", 0..<1),
        .records("a", 1..<2), .records("b", 1..<2), .records("c", 1..<2), .records("a", 2..<5),
      ])
    // A single large grant is shared between the topics and fully used.
    publish(100, to: "b", from: 2, producer, stream: 2)
    small.settle()
    subscriber.forget()
    subscriber.send(Demand(grantedThrough: 29), stream: 1)
    small.settle()
    var counts: [UInt64] = []
    for frame in subscriber.frames(on: 1) where frame.header.type == .deliver {
      counts.append(UInt64(try frame.body.withUnsafeBytes { try DeliverHeader.decode($0).header.count }))
    }
    #expect(counts.reduce(0, +) == 20)
    #expect(counts.first == 10)
  }

  @Test func anEndIsOneTopicsAffair() throws {
    let small = try SmallWorld()
    let client = small.connect()
    for (index, topic) in ["a", "b"].enumerated() { publish(1, to: topic, client, stream: UInt32(index + 2)) }
    client.send(Complete(.finished), stream: 2)
    small.settle()
    client.send(SubscribePattern(pattern: "*", grantedThrough: .max), stream: 1)
    small.settle()
    #expect(
      try heard(client)
        == [
          .subscribed, .matched("a", at: 0), .complete, .records("a", 0..<1), .live("a"), .ended("a"),
          .matched("b", at: 0), .records("b", 0..<1), .live("b"), .allLive,
        ].sorted(like: try heard(client)))
    client.forget()
    publish(1, to: "b", from: 1, client, stream: 3)
    small.settle()
    #expect(client.types.contains(.deliver))
  }

  @Test func deletedTopicsGoAndComeBack() throws {
    let small = try SmallWorld(brokerLoops: 2)
    let (client, other) = (small.connect(), small.connect())
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: .max), stream: 1)
    small.settle()
    for round in 0..<3 as Range<UInt32> {
      publish(2, to: "t.a", other, stream: 1 + 2 * round)
      small.settle()
      other.send(TopicDelete(topic: "t.a"), stream: 2 + 2 * round)
      small.settle()
    }
    let heard = try heard(client).filter {
      switch $0 {
      case .live, .records: false
      default: true
      }
    }
    let round: [Heard] = [.matched("t.a", at: 0), .unmatched("t.a")]
    #expect(heard == [.subscribed, .complete, .allLive] + round + round + round)
  }

  /// A topic that restarts after its end is read on, epoch by epoch.
  @Test func aTopicThatStartsOverIsMatchedAnew() throws {
    let small = try SmallWorld {
      $0.topicDefaults.scope = .whileConnected
    }
    let (client, producer) = (small.connect(), small.connect())
    client.send(SubscribePattern(pattern: ">", grantedThrough: .max), stream: 1)
    small.settle()
    for stream in 1...3 as ClosedRange<UInt32> {
      publish(2, to: "t", producer, stream: stream)
      producer.send(Complete(.finished), stream: stream)
      small.settle()
    }
    let heard = try heard(client)
    #expect(heard.filter { $0 == .matched("t", at: 0) }.count == 4)
    #expect(heard.filter { $0 == .ended("t") }.count == 3)
    let records = heard.filter { if case .records = $0 { true } else { false } }
    #expect(records.reduce(0) { if case .records(_, let range) = $1 { $0 + range.count } else { $0 } } == 6)
    #expect(!heard.contains(.unmatched("t")))
  }

  @Test func positionsSayWhereToGoOn() throws {
    let small = try SmallWorld()
    let (producer, client) = (small.connect(), small.connect())
    for (index, topic) in ["a", "b", "c"].enumerated() {
      publish(5, to: topic, producer, stream: UInt32(index + 1))
    }
    small.settle()
    let epochs = try ["a", "b"].map { try small.broker.core.registry.known($0).epoch.number }
    client.send(
      SubscribePattern(
        pattern: "*", start: .new, grantedThrough: .max,
        positions: [TopicPosition(topic: "a", epoch: epochs[0], nextOffset: 3)], more: true), stream: 1)
    small.settle()
    #expect(try heard(client) == [])
    client.send(
      Positions(
        [
          // A position in another epoch, and one in a topic that doesn't exist.
          TopicPosition(topic: "b", epoch: epochs[1] &+ 1, nextOffset: 2),
          TopicPosition(topic: "gone", epoch: 1, nextOffset: 2),
        ], more: false), stream: 1)
    small.settle()
    let heard = try heard(client)
    #expect(heard.contains(.matched("a", at: 3)))
    #expect(heard.contains(.matched("b", at: 0)))
    #expect(heard.contains(.matched("c", at: 5)))
    #expect(heard.contains(.records("a", 3..<5)))
    #expect(heard.contains(.records("b", 0..<5)))
    #expect(heard.last == .allLive)
  }

  @Test func whatIsGoneIsALagOrTheEnd() throws {
    let small = try SmallWorld { $0.topicDefaults = TopicSettings(replayRecords: 2, replayBytes: 20) }
    let (producer, client) = (small.connect(), small.connect())
    for batch in 0..<400 as Range<UInt64> {
      if batch == 0 { producer.send(PublishOpen(topic: "a", acknowledgement: .none), stream: 1) }
      producer.publish([[UInt8](repeating: 1, count: 60_000)], from: batch, stream: 1)
      small.settle(.milliseconds(10))
    }
    let epoch = try small.broker.core.registry.known("a").epoch
    let position = TopicPosition(topic: "a", epoch: epoch.number, nextOffset: 1)
    client.send(
      SubscribePattern(pattern: "*", lag: .skip, grantedThrough: 1, positions: [position]), stream: 1)
    client.send(
      SubscribePattern(pattern: "*", lag: .fail, grantedThrough: 1, positions: [position]), stream: 2)
    small.settle()
    let first = epoch.log.lowestForReturning
    try #require(first > 1)
    #expect(
      try heard(client).prefix(3) == [.subscribed, .matched("a", at: first), .lag("a", first - 1)])
    #expect(try heard(client, on: 2) == [.fault(.lagged)])
  }

  @Test func aSubscriptionTakesEverythingWithItWhenItGoes() throws {
    let small = try SmallWorld(brokerLoops: 2)
    let (client, other) = (small.connect(), small.connect())
    for number in 0..<600 { _ = try small.broker.core.registry.use("t.\(number)") }
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: .max), stream: 1)
    client.send(SubscribePattern(pattern: "t.1", grantedThrough: .max), stream: 2)
    other.send(SubscribePattern(pattern: ">", grantedThrough: .max), stream: 1)
    small.settle()
    let registry = small.broker.core.registry
    #expect(try registry.known("t.1").attached.subscriptions == 3)
    #expect(try registry.known("t.2").attached.subscriptions == 2)
    #expect(registry.watches == 3)
    client.send(Cancel(), stream: 1)
    small.settle()
    #expect(try heard(client).last == .cancelled)
    #expect(try registry.known("t.2").attached.subscriptions == 1)
    client.close()
    other.close()
    small.settle()
    #expect(registry.watches == 0)
    for topic in registry.all { #expect(topic.loopStates.isEmpty && topic.attached.subscriptions == 0) }
  }

  @Test func limits() throws {
    let small = try SmallWorld {
      $0.limits.patternsPerConnection = 2
      $0.limits.matches = 3
    }
    let registry = small.broker.core.registry
    for name in ["a.1", "a.2", "b.1"] { _ = try registry.use(name) }
    let client = small.connect()
    client.send(SubscribePattern(pattern: "a.*", grantedThrough: 1), stream: 1)
    client.send(SubscribePattern(pattern: "*.1", grantedThrough: 1), stream: 2)
    small.settle()
    #expect(try heard(client, on: 2) == [.fault(.limitReached)])
    #expect(registry.watches == 1)
    client.send(SubscribePattern(pattern: "b.*", grantedThrough: 1), stream: 3)
    client.send(SubscribePattern(pattern: "c.*", grantedThrough: 1), stream: 4)
    small.settle()
    #expect(try heard(client, on: 3).first == .subscribed)
    #expect(try heard(client, on: 4) == [.fault(.limitReached)])
    // Later, one topic too many is created.
    _ = try registry.use("b.2")
    small.settle()
    #expect(try heard(client, on: 3).last == .fault(.limitReached))
    #expect(!client.hasEnded)
    // The limit has room again.
    client.send(SubscribePattern(pattern: "a.1", grantedThrough: 1), stream: 5)
    small.settle()
    #expect(try heard(client, on: 5).first == .subscribed)
    client.send(SubscribePattern(pattern: "a.>.b", grantedThrough: 1), stream: 6)
    small.settle()
    #expect(try heard(client, on: 6) == [.fault(.invalidTopic)])
  }

  @Test func itCountsAsASubscriberOfEachTopic() throws {
    let small = try SmallWorld { $0.topicDefaults.flow = .lossless }
    let (producer, client) = (small.connect(), small.connect())
    client.send(SubscribePattern(pattern: "*", grantedThrough: 3), stream: 1)
    for stream in 1...2 as ClosedRange<UInt32> {
      producer.send(PublishOpen(topic: "t\(stream)", acknowledgement: .none), stream: stream)
    }
    small.settle()
    let info = try show("t1", client, small)
    #expect(info.summary.subscriptions == 1)
    #expect(info.subscriptions.first?.granted == 3)
    #expect(info.subscriptions.first?.stream == 1)
    // Deliveries of one topic use up demand that the other topic could have used.
    producer.publish([[1], [1]], from: 0, stream: 1)
    small.settle()
    #expect(try show("t2", client, small).subscriptions.first?.sent == 2)
  }

  /// A subscriber without demand keeps no state of deleted topics.
  @Test func topicsThatComeAndGoLeaveNothingBehind() throws {
    let small = try SmallWorld()
    let (producer, client) = (small.connect(), small.connect())
    client.send(SubscribePattern(pattern: "*", grantedThrough: 0), stream: 1)
    var stream: UInt32 = 1
    for round in 0..<300 {
      publish(1, to: "t\(round)", producer, stream: stream)
      producer.send(TopicDelete(topic: "t\(round)"), stream: stream + 1)
      small.settle(.milliseconds(5))
      stream += 2
      if stream > 4_000 { stream = 1 }
    }
    let connection = try #require(
      small.broker.contexts[0].connections.first { $0.streams.counts.patterns == 1 })
    #expect(connection.streams.counts.matches == 0)
    let pattern = try #require(connection.streams.object(PatternStream.self, on: 1))
    #expect(pattern.waitingTurns < 150)
    publish(1, to: "last", producer, stream: stream)
    client.forget()
    client.send(Demand(grantedThrough: 5), stream: 1)
    small.settle()
    #expect(client.types.filter { $0 == .deliver }.count == 1)
  }

  private func show(_ topic: String, _ client: ScriptedClient, _ small: SmallWorld) throws -> TopicInfo {
    client.send(TopicShow(topic: topic), stream: 90)
    small.settle()
    let answer = try #require(client.frames(on: 90).last)
    return try answer.decoded(TopicInfo.self)
  }
}

extension [PatternTests.Heard] {
  /// The same elements in the order of `others`, if they are the same: the order of turns isn't specified.
  fileprivate func sorted(like others: [PatternTests.Heard]) -> [PatternTests.Heard] {
    var left = self
    for other in others {
      guard let index = left.firstIndex(of: other) else { return self }
      left.remove(at: index)
    }
    return left.isEmpty ? others : self
  }
}
