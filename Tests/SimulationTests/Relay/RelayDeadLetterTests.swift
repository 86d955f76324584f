import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Dead letters of a group in a topic that another node serves.
@Suite struct RelayDeadLetterTests {
  /// A name in another shard than the group's topic.
  private func letters(_ relay: RelayWorld) throws -> String {
    let names = (0..<100).map { "letters.\($0)" }
    return try #require(names.first { relay.shard(of: $0) != relay.shard(of: "t") })
  }

  private func settings(_ letters: String) -> JoinGroup.Settings {
    var settings = JoinGroup.Settings(acknowledgement: .explicit)
    settings.deadLetters = letters
    return settings
  }

  /// A member of the group, which has received ten records.
  private func member(
    _ relay: RelayWorld, _ letters: String, credentials: Credentials = .none
  ) throws -> ScriptedClient {
    let (producer, member) = (
      relay.connect(to: 0, credentials: credentials), relay.connect(to: 0, credentials: credentials)
    )
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    member.send(
      JoinGroup(topic: "t", group: "g", settings: settings(letters), grantedThrough: 100), stream: 1)
    relay.settle()
    producer.publish(10, from: 0, stream: 1)
    relay.settle()
    #expect(member.records(on: 1).count == 10)
    return member
  }

  private func reject(_ count: UInt32, from offset: UInt64, _ member: ScriptedClient) {
    member.send(Settle(.reject, delivery: 1, firstOffset: offset, count: count), stream: 1)
  }

  private func count(_ relay: RelayWorld, at node: Int, _ letters: String) -> UInt64? {
    relay.nodes[node].broker.core.registry.find(letters)?.summary.nextOffset
  }

  private func group(_ relay: RelayWorld) throws -> Group {
    try #require(
      relay.nodes[0].broker.core.registry.find("t")?.state.withLock { $0.groups["g"] })
  }

  @Test func theyGoToTheNodeThatServesTheirTopic() throws {
    let relay = try RelayWorld()
    let letters = try letters(relay)
    relay.move(letters, to: 1)
    let member = try member(relay, letters)
    reject(10, from: 0, member)
    relay.settle(.seconds(2))
    #expect(count(relay, at: 0, letters) == nil)
    #expect(count(relay, at: 1, letters) == 10)
    let group = try group(relay)
    #expect(group.core.withLock { $0.state.counts.deadLetters } == 10)
    #expect(group.core.withLock { $0.state.floor } == 10)
    // No stream stays open.
    #expect(relay.nodes[0].broker.links.map(\.streams) == [0])
    #expect(relay.nodes[1].broker.core.registry.find(letters)?.producerCount == 0)
  }

  @Test(arguments: UInt64(1)...20)
  func eachIsThereOnceHoweverOftenTheLinkBreaksAndTheTopicMoves(seed: UInt64) throws {
    let relay = try RelayWorld(seed: seed, conditions: SimulatedConditions())
    let letters = try letters(relay)
    relay.move(letters, to: 1)
    let member = try member(relay, letters)
    for offset in 0..<10 as Range<UInt64> {
      reject(1, from: offset, member)
      relay.settle(relay.world.random.next(in: .zero ... .milliseconds(10)))
      for connection in relay.links where relay.world.random.oneIn(2) { connection.reset() }
      relay.settle(relay.world.random.next(in: .zero ... .milliseconds(300)))
    }
    relay.settle(.seconds(60))
    #expect(count(relay, at: 1, letters) == 10)
    #expect(try group(relay).core.withLock { $0.state.counts.deadLetters } == 10)
    #expect(try group(relay).core.withLock { $0.state.outbox } == GroupOutbox(next: 10))
  }

  @Test func theyWaitWhileNoNodeServesTheirTopicAndGoOnAtTheNext() throws {
    let relay = try RelayWorld()
    let letters = try letters(relay)
    relay.move(letters, to: nil)
    let member = try member(relay, letters)
    reject(4, from: 0, member)
    relay.settle(.seconds(2))
    #expect(try group(relay).core.withLock { $0.state.floor } == 0)
    relay.move(letters, to: 1)
    relay.settle(.seconds(5))
    #expect(count(relay, at: 1, letters) == 4)
    // The group's own node serves the dead-letter topic from here on.
    relay.nodes[1].broker.lose(relay.shard(of: letters))
    relay.move(letters, to: 0)
    reject(6, from: 4, member)
    relay.settle(.seconds(5))
    #expect(count(relay, at: 0, letters) == 6)
    #expect(try group(relay).core.withLock { $0.state.floor } == 10)
  }

  @Test func aCompactTopicOfAnotherNodeTakesNone() throws {
    let relay = try RelayWorld()
    let letters = try letters(relay)
    relay.move(letters, to: 1)
    let owner = relay.connect(to: 1)
    var compact = TopicSettings()
    compact.compact = true
    owner.send(TopicCreate(topic: letters, settings: compact), stream: 1)
    relay.settle()
    let member = try member(relay, letters)
    reject(2, from: 0, member)
    relay.settle(.seconds(20))
    #expect(try group(relay).core.withLock { $0.state.counts } == GroupState.Counts())
    #expect(try group(relay).core.withLock { $0.state.floor } == 0)
    owner.send(TopicDelete(topic: letters), stream: 2)
    relay.settle(.seconds(60))
    #expect(count(relay, at: 1, letters) == 2)
  }

  @Test func whatHasANumberIsNoLongerAcknowledged() throws {
    let relay = try RelayWorld()
    let letters = try letters(relay)
    relay.move(letters, to: 1)
    let member = try member(relay, letters)
    let owner = try #require(relay.nodes[1].broker.contexts[0].loop as? SimulatedLoop)
    owner.stall()
    reject(2, from: 0, member)
    relay.settle()
    // The first has a number by then, or the group waits for the other node.
    member.send(Settle(.acknowledge, delivery: 1, firstOffset: 1, count: 1), stream: 1)
    relay.settle()
    owner.resume()
    relay.settle(.seconds(30))
    let counts = try group(relay).core.withLock { $0.state.counts }
    #expect(counts.deadLetters == 1 && counts.dropped == 0)
    #expect(count(relay, at: 1, letters) == 1)
    #expect(try group(relay).core.withLock { $0.state.floor } == 2)
  }

  @Test func theNodeMayPublishThereOnBehalfOfTheGroup() throws {
    let rules = ["ada": "all t all letters.>"]
    let relay = try RelayWorld(access: .init(rules: [rules, [:]]))
    let letters = try letters(relay)
    relay.move(letters, to: 1)
    let member = try member(relay, letters, credentials: PlainAccess.password(of: "ada"))
    reject(10, from: 0, member)
    relay.settle(.seconds(2))
    #expect(count(relay, at: 1, letters) == 10)
  }
}
