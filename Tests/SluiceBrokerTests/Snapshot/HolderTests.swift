import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Which subscription is shown as blocking producers, with which limit, and since when.
@Suite struct HolderTests {
  /// Publishes one record whenever one is granted.
  private struct Source {
    let setting: SnapshotSetting
    let peer: ScenePeer
    let size: Int
    private(set) var published: UInt64 = 0
    private var bytes: UInt64 = 0

    init(_ setting: SnapshotSetting, size: Int) throws {
      self.setting = setting
      self.size = size
      peer = try setting.publisher("t")
    }

    mutating func run(for time: Duration, _ meanwhile: () -> Void = {}) {
      let end = setting.world.now + time
      while setting.world.now < end {
        if peer.granted[1] ?? 0 > published, peer.grantedBytes[1] ?? 0 > bytes {
          setting.publish([size], from: published, by: peer)
          published += 1
          bytes += UInt64(SessionProbe.batch([size]).bytes.count)
        } else {
          setting.run(for: .milliseconds(5))
        }
        meanwhile()
      }
    }
  }

  private struct Holder: Equatable {
    var connection: UInt64
    var limit: TopicInfo.HoldLimit
  }

  private func all(_ setting: SnapshotSetting) throws -> [TopicInfo.Subscription] {
    try setting.topic("t").subscriptions.map(\.info).sorted { $0.connection < $1.connection }
  }

  private func holders(_ setting: SnapshotSetting) throws -> [Holder] {
    try all(setting).filter { $0.holding > 0 }.map { Holder(connection: $0.connection, limit: $0.limit) }
  }

  private func lossless(
    records: UInt64 = 0, bytes: UInt64 = 1 << 20, loops: Int, _ flow: TopicSettings.Flow = .lossless
  ) throws -> SnapshotSetting {
    try SnapshotSetting(loops: loops) {
      $0.topicDefaults.flow = flow
      $0.topicDefaults.bufferRecords = records
      $0.topicDefaults.bufferBytes = bytes
    }
  }

  @Test(arguments: [1, 2]) func oneThatReadsFastWithLimitedDemandIsNotNamedWithOneThatReadsNothing(
    loops: Int
  ) throws {
    let setting = try lossless(bytes: 200_000, loops: loops)
    let reader = try setting.subscriber("t", granted: 500)
    let stopped = try setting.subscriber("t", granted: .max)
    stopped.pauseReading(true)
    var source = try Source(setting, size: 60_000)
    var asked: UInt64 = 500
    source.run(for: .seconds(3)) {
      let wanted = UInt64(reader.records[1]?.count ?? 0) + 500
      guard wanted > asked else { return }
      asked = wanted
      reader.send(Demand(grantedThrough: asked).encoded(stream: 1))
    }
    #expect(source.published < 500)
    #expect(reader.records[1]?.count == Int(source.published))
    #expect(try holders(setting) == [Holder(connection: 2, limit: .buffer)])
    let shown = try all(setting)
    #expect(shown[0].lastMinute == 0 && shown[0].lastFiveMinutes == 0)
    #expect(shown[1].lastMinute > 400 && shown[1].lastMinute == shown[1].lastFiveMinutes)
    // Only the subscribers block the topic.
    let holds = try setting.topic("t").holds
    #expect(holds.map(\.reason) == [.subscribers])
    #expect(holds.first?.milliseconds ?? 0 >= shown[1].holding)
  }

  @Test(arguments: [1, 2]) func oneThatAsksForALittleNowAndThenHasStoppedProducersAllTheTime(loops: Int)
    throws
  {
    let setting = try lossless(records: 2, loops: loops)
    let slow = try setting.subscriber("t", granted: 1)
    let quick = try setting.subscriber("t", granted: .max)
    var source = try Source(setting, size: 10)
    source.run(for: .milliseconds(500))
    for granted: UInt64 in 2...21 {
      slow.send(Demand(grantedThrough: granted).encoded(stream: 1))
      source.run(for: .milliseconds(500))
    }
    #expect(try holders(setting) == [Holder(connection: 1, limit: .demand)])
    let found = try all(setting)
    #expect((10_000...11_000).contains(found[0].holding), "\(found[0])")
    #expect((800...950).contains(found[0].lastMinute), "\(found[0])")
    #expect(found[1].lastMinute == 0)
    // After a pause the time restarts, while the shares keep the past.
    slow.send(Demand(grantedThrough: 5_000).encoded(stream: 1))
    source.run(for: .milliseconds(1_500))
    #expect(try holders(setting).isEmpty)
    source.run(for: .seconds(30))
    #expect(source.published == 5_002)
    #expect(try holders(setting) == [Holder(connection: 1, limit: .demand)])
    let again = try all(setting)[0]
    #expect(again.holding < 30_000, "\(again)")
    #expect((600...990).contains(again.lastMinute), "\(again)")
    _ = quick
  }

  @Test func oneOnAnotherLoopThatRestsIsNamedWhenItsLimitIsTheLeast() throws {
    let setting = try lossless(loops: 2)
    let resting = try setting.subscriber("t", granted: 10)
    let slower = try setting.subscriber("t", granted: 5)
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(2))
    #expect(try holders(setting) == [Holder(connection: 2, limit: .demand)])
    slower.send(Demand(grantedThrough: 50).encoded(stream: 1))
    source.run(for: .seconds(3))
    #expect(try holders(setting) == [Holder(connection: 1, limit: .demand)])
    // Not since it subscribed, but since the other one stopped blocking producers.
    let found = try all(setting)
    #expect((2_900...3_100).contains(found[0].holding), "\(found[0])")
    #expect(found[1].lastMinute > 0)
    _ = resting
  }

  @Test(arguments: [1, 2]) func ofTheFastestTheOneThatIsAheadMakesTheLimit(loops: Int) throws {
    let setting = try lossless(loops: loops, .fastest)
    let resting = try setting.subscriber("t", granted: 10)
    let other = try setting.subscriber("t", granted: 5)
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(2))
    #expect(try holders(setting) == [Holder(connection: 1, limit: .demand)])
    // The other subscription overtakes it, in many steps. The first one hasn't moved, and the time that it blocked producers counts.
    for granted: UInt64 in 11...60 {
      other.send(Demand(grantedThrough: granted).encoded(stream: 1))
      source.run(for: .milliseconds(50))
    }
    #expect(try holders(setting) == [Holder(connection: 2, limit: .demand)])
    let found = try all(setting)
    #expect(found[0].lastMinute > 250, "\(found[0])")
    #expect(found[1].lastMinute > 250, "\(found[1])")
    _ = resting
  }

  @Test func allThatMakeTheLimitAreNamed() throws {
    let setting = try lossless(loops: 2)
    let peers = try [5, 5, 6].map { try setting.subscriber("t", granted: $0) }
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(1))
    #expect(
      try holders(setting) == [Holder(connection: 1, limit: .demand), Holder(connection: 2, limit: .demand)])
    _ = peers
  }

  @Test(arguments: [1, 2]) func theMembersOfAGroupAreNamedForItsDemand(loops: Int) throws {
    let setting = try lossless(loops: loops)
    let members = try [2, 3].map { (granted: UInt64) in
      let member = try setting.peer("member")
      member.send(JoinGroup(topic: "t", group: "g", grantedThrough: granted).encoded(stream: 1))
      setting.run(for: .milliseconds(10))
      return member
    }
    let reader = try setting.subscriber("t", granted: .max)
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(1))
    #expect(source.published == 5)
    #expect(
      try holders(setting) == [
        Holder(connection: 1, limit: .groupDemand), Holder(connection: 2, limit: .groupDemand),
      ])
    // When one member requests more, none blocks producers until that is used up.
    members[0].send(Demand(grantedThrough: 4).encoded(stream: 1))
    source.run(for: .seconds(1))
    #expect(source.published == 7)
    let found = try all(setting)
    #expect(found.map { $0.holding > 1_500 } == [true, true, false], "\(found)")
    #expect(found.map { $0.lastMinute > 0 } == [true, true, false])
    _ = reader
  }

  @Test func aPatternIsNamedForTheDemandThatItsTopicsShare() throws {
    let setting = try lossless(loops: 1)
    let reader = try setting.subscriber("t", granted: .max)
    let pattern = try setting.peer("pattern")
    pattern.send(SubscribePattern(pattern: "*", start: .earliest, grantedThrough: 4).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(1))
    #expect(source.published == 4)
    #expect(try holders(setting) == [Holder(connection: 2, limit: .demand)])
    pattern.send(Demand(grantedThrough: 5).encoded(stream: 1))
    source.run(for: .seconds(1))
    let found = try all(setting)
    #expect(source.published == 5)
    #expect((1_900...2_100).contains(found[1].holding), "\(found[1])")
    _ = reader
  }

  @Test func oneThatLeavesHoldsNothingAndLeavesNothingBehind() throws {
    let setting = try lossless(loops: 1)
    let slow = try setting.subscriber("t", granted: 1)
    let quick = try setting.subscriber("t", granted: .max)
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(1))
    #expect(try holders(setting) == [Holder(connection: 1, limit: .demand)])
    slow.leave()
    source.run(for: .seconds(1))
    #expect(try holders(setting).isEmpty)
    #expect(try all(setting).map(\.connection) == [2])
    _ = quick
  }

  @Test func withoutSubscribersNoneIsNamed() throws {
    let setting = try SnapshotSetting {
      $0.topicDefaults.flow = .lossless
      $0.topicDefaults.withoutSubscribers = .hold
    }
    var source = try Source(setting, size: 10)
    source.run(for: .seconds(1))
    #expect(source.published == 0)
    let topic = try setting.topic("t")
    #expect(topic.subscriptions.isEmpty)
    #expect(topic.holds.map(\.reason) == [.subscribers])
    // The producer leaves: nothing is blocked any longer.
    source.peer.leave()
    setting.run(for: .seconds(2))
    #expect(try setting.topic("t").holds.map(\.milliseconds) == [0])
  }
}
