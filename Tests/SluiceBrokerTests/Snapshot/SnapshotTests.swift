import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Snapshots of a broker.
@Suite struct SnapshotTests {
  @Test func everybodyIsShownWithWhatTheyHave() throws {
    let setting = try SnapshotSetting(loops: 2)
    let peers = [try setting.publisher("b"), try setting.subscriber("a", granted: 5)]
    setting.run(for: .seconds(3))
    let snapshot = try setting.snapshot()
    #expect(snapshot.topics.map(\.summary.topic) == ["a", "b"])
    #expect(snapshot.topicCount == 2)
    #expect(snapshot.connectionCount == 2)
    #expect(snapshot.connections.map(\.id) == [1, 2])
    #expect(snapshot.connections.map(\.client) == ["publisher", "subscriber"])
    #expect(snapshot.connections.map(\.publications) == [1, 0])
    #expect(snapshot.connections.map(\.subscriptions) == [0, 1])
    #expect(snapshot.connections.map(\.topics) == [["b"], ["a"]])
    #expect(snapshot.connections.allSatisfy { $0.age >= 3_000 && $0.age < 3_100 && $0.security.isEmpty })
    #expect(snapshot.loops.map(\.connections).reduce(0, +) == 2)
    #expect(snapshot.loops.allSatisfy { $0.turns.count > 0 })
    #expect(snapshot.uptime >= 3_000 && snapshot.uptime < 3_100)
    #expect(snapshot.time == setting.world.wallClock)
    let subscription = try #require(snapshot.topics[0].subscriptions.first)
    #expect(subscription.info.granted == 5)
    #expect(!subscription.isBlocked && subscription.lag == 0)
    #expect(snapshot.topics[1].publications.first?.info.client == "publisher")
    #expect(snapshot.metrics.first { $0.metric == .connections }?.value == 2)
    _ = peers
  }

  @Test func noMoreIsListedThanWasAskedFor() throws {
    let setting = try SnapshotSetting(loops: 2)
    var peers: [ScenePeer] = []
    for name in ["quiet", "busy", "idle"] { peers.append(try setting.publisher(name)) }
    setting.publish([1, 1], from: 0, by: peers[1])
    for _ in 0..<4 { peers.append(try setting.subscriber("busy", granted: 1)) }
    var request = SnapshotRequest(
      topics: 1, subscriptionsPerTopic: 3, publicationsPerTopic: 0, connections: 2)
    let snapshot = try setting.snapshot(request)
    #expect(snapshot.topics.map(\.summary.topic) == ["busy"])
    #expect(snapshot.topicCount == 3)
    #expect(snapshot.topics[0].subscriptions.count == 3)
    #expect(snapshot.topics[0].summary.subscriptions == 4)
    #expect(snapshot.topics[0].publications.isEmpty)
    #expect(snapshot.topics[0].traffic.sent == 4)
    #expect(snapshot.connections.map(\.id) == [1, 2])
    #expect(snapshot.connectionCount == 7)
    request.topic = "idle"
    #expect(try setting.snapshot(request).topics.map(\.summary.topic) == ["idle"])
    request.topic = "nowhere"
    #expect(try setting.snapshot(request).topics.isEmpty)
  }

  @Test func thoseWhoHoldUpProducersAreListedFirst() throws {
    let setting = try SnapshotSetting(loops: 2) {
      $0.topicDefaults.flow = .lossless
      $0.topicDefaults.bufferRecords = 2
    }
    var peers: [ScenePeer] = []
    for granted: UInt64 in [100, 100, 2, 100] { peers.append(try setting.subscriber("t", granted: granted)) }
    let publisher = try setting.publisher("t")
    var published: UInt64 = 0
    while publisher.granted[1] ?? 0 > published {
      setting.publish([1], from: published, by: publisher)
      setting.run(for: .milliseconds(10))
      published += 1
    }
    setting.run(for: .milliseconds(100))
    let request = SnapshotRequest(subscriptionsPerTopic: 1)
    let topic = try #require(try setting.snapshot(request).topics.first)
    #expect(topic.heldUp >= 100)
    #expect(topic.subscriptions.map(\.info.connection) == [3])
    #expect(topic.subscriptions.map(\.lag) == [2])
  }

  @Test func aStoppedBrokerAnswersForNobody() throws {
    let setting = try SnapshotSetting(loops: 2)
    let publisher = try setting.publisher("t")
    setting.publish([1], from: 0, by: publisher)
    let isStopped = Flag()
    setting.broker.whenStopped { isStopped.raise() }
    setting.broker.stop()
    try setting.wait(for: "the end") { isStopped.isRaised }
    let snapshot = try setting.snapshot()
    #expect(snapshot.connectionCount == 0)
    #expect(snapshot.topics.first?.traffic.received == 1)
    // The same after its loops have ended.
    for loop in setting.brokerLoops { loop.stop() }
    let found = Shared<BrokerSnapshot?>(nil)
    setting.broker.snapshot { gathered in found.update { $0 = gathered.assembled() } }
    let last = try #require(found.value)
    #expect(last.connections.isEmpty && last.time == 0)
    #expect(last.topics.first?.traffic.received == 1)
  }

  @Test func aLoopThatEndsInBetweenIsNotWaitedFor() throws {
    let setting = try SnapshotSetting(loops: 2)
    let found = Shared<BrokerSnapshot?>(nil)
    setting.broker.snapshot { gathered in found.update { $0 = gathered.assembled() } }
    #expect(found.value == nil)
    for loop in setting.brokerLoops { loop.stop() }
    #expect(found.value != nil)
  }

  @Test func theWayOfRecordsIsMeasured() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let late = try setting.subscriber("t", granted: 0)
    setting.publish([1], from: 0, by: publisher)
    setting.run(for: .milliseconds(100))
    late.send(Demand(grantedThrough: .max).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    // It had no demand when the record arrived.
    #expect(try setting.snapshot().latency.count == 0)
    for sequence: UInt64 in 1...5 { setting.publish([1], from: sequence, by: publisher) }
    let latency = try setting.snapshot().latency
    #expect(latency.count == 5)
    #expect(latency.sum < 10_000_000)
  }

  @Test func theAsynchronousTwinSaysTheSame() async throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [.host(Loopback.freshHost(), port: 0)]
    configuration.loops = 2
    let broker = try Broker(configuration)
    try broker.start()
    let snapshot = await broker.snapshot()
    #expect(snapshot.loops.count == 2)
    broker.stop()
    try await broker.run()
    // Its loops have ended.
    #expect(await broker.snapshot().connectionCount == 0)
  }
}
