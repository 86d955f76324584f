import SluiceIO
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Records that a group rejects are stored in its dead-letter topic, or stay in the group until that topic accepts them.
@Suite struct DeadLetterTests {
  private static let compact: TopicSettings = {
    var settings = TopicSettings()
    settings.compact = true
    return settings
  }()

  private static let group: JoinGroup.Settings = {
    var settings = JoinGroup.Settings(acknowledgement: .explicit)
    settings.deadLetters = "letters"
    return settings
  }()

  private func join(_ client: ScriptedClient, _ small: SmallWorld) throws -> Fault? {
    let frame = JoinGroup(topic: "t", group: "g", settings: Self.group, grantedThrough: 9)
    _ = client.ask(frame, stream: 1, in: small)
    return try client.fault(on: 1)
  }

  @Test func aGroupIsNotMadeWithACompactTopicForItsDeadLetters() throws {
    let small = try SmallWorld()
    let client = small.connect()
    _ = client.ask(TopicCreate(topic: "letters", settings: Self.compact), stream: 9, in: small)
    let fault = try join(client, small)
    #expect(fault?.code == .unsupported)
    #expect(fault?.message.contains("letters") == true && fault?.message.contains("compact") == true)
    #expect(small.broker.core.registry.find("t")?.hasGroup("g") != true)
  }

  @Test func aGroupIsNotMadeWhenARuleWouldMakeItsDeadLetterTopicCompact() throws {
    let small = try SmallWorld {
      $0.topicRules = [TopicRule(pattern: try! TopicPattern("letters"), settings: Self.compact)]
    }
    let client = small.connect()
    #expect(try join(client, small)?.code == .unsupported)
    #expect(small.broker.core.registry.find("letters") == nil)
  }

  @Test(arguments: [false, true])
  func recordsStayInTheGroupWhileTheirDeadLetterTopicIsCompact(hasKey: Bool) throws {
    let small = try SmallWorld()
    let (client, producer) = (small.connect(), small.connect())
    #expect(try join(client, small) == nil)
    _ = producer.ask(PublishOpen(topic: "t", acknowledgement: .none), stream: 1, in: small)
    var batch = BatchBuilder()
    try [UInt8("k".utf8.first!)].withUnsafeBytes { key in
      try batch.append(key: hasKey ? key : nil, headers: [], payload: key)
      try batch.append(key: hasKey ? key : nil, headers: [], payload: key)
    }
    producer.publish(batch, from: 0, stream: 1)
    small.settle()
    _ = client.ask(TopicCreate(topic: "letters", settings: Self.compact), stream: 9, in: small)
    client.send(Settle(.reject, delivery: 1, firstOffset: 0, count: 2), stream: 1)
    small.settle(.seconds(20))
    let group = try #require(small.broker.core.registry.find("t")?.state.withLock { $0.groups["g"] })
    #expect(group.core.withLock { $0.state.counts } == GroupState.Counts())
    #expect(group.core.withLock { $0.state.floor } == 0)

    // A recreated topic of that name accepts them.
    _ = client.ask(TopicDelete(topic: "letters"), stream: 9, in: small)
    small.settle(.seconds(60))
    #expect(group.core.withLock { $0.state.counts.deadLetters } == 2)
    #expect(group.core.withLock { $0.state.floor } == 2)
    #expect(small.broker.core.registry.find("letters")?.summary.records == 2)
  }
}
