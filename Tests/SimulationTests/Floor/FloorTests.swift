import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The floor of a topic, step by step: records dropped by trims and limits are missing for every reader, and in every figure.
@Suite struct FloorTests {
  typealias Storage = TopicSettings.Storage

  private static func settings(
    _ storage: Storage = .memory, _ change: (inout TopicSettings) -> Void = { _ in }
  ) -> TopicSettings {
    var settings = TopicSettings()
    settings.storage = storage
    change(&settings)
    return settings
  }

  private func scene(
    _ storage: Storage = .memory, _ change: (inout TopicSettings) -> Void = { _ in }
  ) throws -> FloorWorld {
    let world = try FloorWorld()
    try world.create(Self.settings(storage, change))
    return world
  }

  /// Leaves a durable cursor at `offset`, without a subscription.
  private func leaveCursor(_ name: String, at offset: UInt64, in world: FloorWorld) {
    let reader = FloorReader(world, FloorReader.subscribe(cursor: name, granted: offset))
    reader.commit(offset)
    reader.leave()
  }

  private static let explicit = JoinGroup.Settings(acknowledgement: .explicit)

  private func join(_ world: FloorWorld, granted: UInt64 = Credit.unlimited) -> FloorReader {
    FloorReader(
      world,
      joining: JoinGroup(
        topic: FloorWorld.topic, group: "g", start: .earliest, settings: Self.explicit,
        grantedThrough: granted))
  }

  // MARK: Limits that are raised

  @Test(arguments: [Storage.memory, .durable], [false, true])
  func largerLimitsBringNothingBack(storage: Storage, restarts: Bool) throws {
    let world = try scene(storage) { if storage == .durable { $0.sync = .always } }
    for _ in 0..<4 { world.publish(5) }
    try world.set { $0.replayRecords = 5 }
    try world.set { $0.replayRecords = TopicSettings.unlimited }
    if restarts, storage == .durable { try world.restart(inOrder: false) }
    #expect(try world.info().summary.firstOffset == 15)
    #expect(FloorReader(world, FloorReader.subscribe()).offsets == Array(15..<20))
    #expect(FloorReader(world, FloorReader.subscribe(.offset(2))).lags.map(\.missed) == [13])
    #expect(FloorReader(world, FloorReader.subscribe(.last(10))).offsets == Array(15..<20))
    #expect(FloorReader(world, FloorReader.subscribe(.time(0))).offsets == Array(15..<20))
  }

  @Test func whatHasExpiredStaysGoneWhenAgesMayBeGreater() throws {
    let world = try scene { $0.replayAge = 1_000 }
    world.publish(5)
    world.settle(.seconds(1))
    world.publish(5)
    try world.set { $0.replayAge = 3_600_000 }
    #expect(FloorReader(world, FloorReader.subscribe()).offsets == Array(5..<10))
    #expect(try world.info().summary.firstOffset == 5)
  }

  @Test func aCompactTopicBringsNoKeyBack() throws {
    let world = try scene { $0.compact = true }
    world.publish(4, keys: ["a", "b", "c", "d"])
    try world.set { $0.replayRecords = 1 }
    try world.set { $0.replayRecords = TopicSettings.unlimited }
    #expect(FloorReader(world, FloorReader.subscribe()).payloads == ["3"])
    // A new record with the key of a dropped one is retained normally.
    world.publish(1, keys: ["a"])
    #expect(FloorReader(world, FloorReader.subscribe()).payloads == ["3", "4"])
  }

  // MARK: Trims

  /// Trims records in the active segment, and in many full ones.
  @Test(arguments: [Storage.memory, .durable], [(200, 0), (2_000, 4_000)])
  func aCursorGetsNothingThatWasTrimmed(storage: Storage, _ amount: (batches: Int, size: Int)) throws {
    let world = try scene(storage)
    for _ in 0..<amount.batches / 100 { world.publish(100, size: amount.size) }
    leaveCursor("c", at: 1, in: world)
    try world.trim(.newest(1))
    let reader = FloorReader(world, FloorReader.subscribe(cursor: "c"))
    #expect(reader.offsets == [world.head - 1])
    #expect(reader.lags.map(\.missed) == [world.head - 2])
  }

  @Test(arguments: [Storage.memory, .durable])
  func aTrimWithinABatchHoldsForCursorsGroupsAndReturningSubscribers(storage: Storage) throws {
    let world = try scene(storage)
    world.publish(10)
    leaveCursor("c", at: 3, in: world)
    let member = join(world, granted: 2)
    for offset in member.offsets { member.settle(.acknowledge, offset) }
    member.leave()
    let subscriber = FloorReader(world, FloorReader.subscribe(granted: 3))
    let epoch = try #require(subscriber.subscribed?.epoch)
    subscriber.leave()
    try world.trim(.from(5))

    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).offsets == Array(5..<10))
    // A subscription that names its epoch resumes after a lost connection, as with Last-Event-ID.
    let returning = FloorReader(world, FloorReader.subscribe(.offset(3), epoch: epoch))
    #expect(returning.offsets == Array(5..<10) && returning.lags.map(\.missed) == [2])
    let again = join(world)
    #expect(again.offsets == Array(5..<10) && again.lags.map(\.missed) == [3])
    #expect(FloorReader(world, FloorReader.subscribe(.offset(0))).offsets == Array(5..<10))
  }

  @Test(arguments: [Storage.memory, .durable])
  func anAttachedSubscriberGetsNoMoreThanWhatWasOnItsWay(storage: Storage) throws {
    let world = try scene(storage)
    world.publish(10)
    let subscriber = FloorReader(world, FloorReader.subscribe(granted: 3))
    let member = join(world, granted: 2)
    try world.trim(.from(7))
    subscriber.grant(Credit.unlimited)
    #expect(subscriber.offsets == [0, 1, 2, 7, 8, 9] && subscriber.lags.map(\.missed) == [4])
    member.grant(Credit.unlimited)
    #expect(member.offsets == [0, 1, 7, 8, 9])
    world.publish(2)
    #expect(subscriber.offsets.suffix(2) == [10, 11] && member.offsets.suffix(2) == [10, 11])
  }

  /// The subscriber reads records from the store; some are loaded ahead for it.
  @Test func aSubscriberThatReadsTheStoreGetsNoMoreThanWhatWasOnItsWay() throws {
    let world = try scene(.durable)
    for _ in 0..<40 { world.publish(100, size: 1_000) }
    try world.restart()
    let subscriber = FloorReader(world, FloorReader.subscribe(granted: 3))
    try world.trim(.from(3_990))
    subscriber.grant(Credit.unlimited)
    #expect(subscriber.offsets == Array(0..<3) + Array(3_990..<4_000))
    #expect(subscriber.lags.map(\.missed) == [3_987])
  }

  @Test func aCompactTopicTrimsWhatAttachedSubscribersHaveYetToGet() throws {
    let world = try scene { $0.compact = true }
    let subscriber = FloorReader(world, FloorReader.subscribe(granted: 1))
    world.publish(6, keys: ["a", "b", "c", "d", "e", "f"])
    leaveCursor("c", at: 1, in: world)
    try world.trim(.newest(2))
    subscriber.grant(Credit.unlimited)
    #expect(subscriber.payloads == ["0", "4", "5"])
    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).payloads == ["4", "5"])
  }

  /// Records that producers have buffered for the first subscriber are retained regardless of the limits; a trim drops them.
  @Test func aLosslessTopicKeepsWhatIsPromisedAndNothingThatWasTrimmed() throws {
    let world = try scene {
      $0.replayRecords = 0
      $0.flow = .lossless
      $0.bufferRecords = 10
      $0.withoutSubscribers = .buffer
    }
    let member = join(world, granted: 2)
    world.publish(8)
    member.leave()
    #expect(try world.cursors().map(\.name) == ["g"])
    // The group retains the records that its last member hasn't processed.
    let again = join(world, granted: 1)
    #expect(again.offsets == [0])
    try world.trim(.from(5))
    again.leave()
    #expect(join(world).offsets == [5, 6, 7])
  }

  // MARK: Returning below the limits

  @Test func aSubscriptionThatLostItsConnectionGoesOnBelowTheLimits() throws {
    let world = try scene { $0.replayRecords = 0 }
    let subscriber = FloorReader(world, FloorReader.subscribe())
    let epoch = try #require(subscriber.subscribed?.epoch)
    world.publish(3)
    subscriber.client.close()
    world.settle()
    world.publish(3)
    #expect(FloorReader(world, FloorReader.subscribe(.offset(3), epoch: epoch)).offsets == [3, 4, 5])
    // A durable cursor that is used again is no interrupted subscription.
    leaveCursor("c", at: 0, in: world)
    world.publish(1)
    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).offsets == [])
    try world.trim(.newest(0))
    #expect(FloorReader(world, FloorReader.subscribe(.offset(3), epoch: epoch)).offsets == [])
  }

  // MARK: Figures

  @Test(arguments: [Storage.memory, .durable])
  func nothingIsBehindAfterAPurge(storage: Storage) throws {
    let world = try scene(storage)
    world.publish(10)
    leaveCursor("c", at: 3, in: world)
    let member = join(world, granted: 2)
    member.leave()
    let idle = FloorReader(world, FloorReader.subscribe(granted: 0))
    #expect(try world.info().consumers.map(\.lag) == [10, 7])
    try world.trim(.newest(0))

    #expect(
      try world.cursors().allSatisfy { $0.nextOffset == 10 && $0.end == 10 && $0.bytes == 0 && $0.age == 0 })
    let info = try world.info()
    #expect(
      info.consumers.map(\.lag) == [0, 0] && info.consumers.allSatisfy { $0.bytes == 0 && $0.age == 0 })
    #expect(info.summary.firstOffset == 10 && info.summary.records == 0)
    // The values that status, the metrics and the problems are derived from.
    let topic = try #require(world.broker.core.registry.find(FloorWorld.topic))
    let consumers = topic.consumers(atMost: 5, now: world.world.now)
    #expect(consumers.behind == 0 && consumers.lag == 0)
    #expect(topic.loopStates.flatMap(\.subscriptions).compactMap(\.standing?.lag) == [0])
    world.publish(2)
    #expect(try world.cursors().map { $0.end - $0.nextOffset } == [2, 2])
    #expect(try world.info().consumers.map(\.lag) == [2, 2])
    _ = idle
  }

  @Test func lagIsCountedFromTheFloorOfTheLimits() throws {
    let world = try scene { $0.replayRecords = 4 }
    world.publish(10)
    leaveCursor("c", at: 7, in: world)
    world.publish(10)
    #expect(try world.cursors().map(\.nextOffset) == [16])
    #expect(try world.info().consumers.map(\.lag) == [4])
    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).offsets == Array(16..<20))
  }

  // MARK: Restarts

  @Test(arguments: [false, true])
  func whatExpiresWhileTheBrokerIsDownIsGoneForTheFirstSubscriber(inOrder: Bool) throws {
    let world = try scene(.durable) { $0.replayAge = 3_000 }
    world.publish(5)
    world.settle(.seconds(2))
    world.publish(5)
    leaveCursor("c", at: 2, in: world)
    try world.restart(inOrder: inOrder, after: .seconds(2))
    // Before the broker's first retention pass.
    let topic = try #require(world.broker.core.registry.find(FloorWorld.topic))
    #expect(topic.summary.firstOffset == 5)
    #expect(FloorReader(world, FloorReader.subscribe()).offsets == Array(5..<10))
    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).offsets == Array(5..<10))
  }

  @Test(arguments: [false, true])
  func whatExpiresOfACompactTopicWhileTheBrokerIsDownIsInNoFigure(inOrder: Bool) throws {
    let world = try scene(.durable) {
      $0.compact = true
      $0.replayAge = 3_000
    }
    world.publish(3, keys: ["a", "b", "c"])
    leaveCursor("c", at: 1, in: world)
    world.settle(.seconds(2))
    world.publish(2, keys: ["d", "e"])
    world.settle(.seconds(1))
    try world.restart(inOrder: inOrder, after: .seconds(1))
    // Before the first subscriber.
    #expect(try world.info().summary.firstOffset == 3)
    #expect(try world.cursors().map { $0.end - $0.nextOffset } == [2])
  }

  @Test func aTrimIsKnownAfterACrash() throws {
    let world = try scene(.durable)
    world.publish(10)
    leaveCursor("c", at: 3, in: world)
    try world.trim(.from(7))
    try world.restart(inOrder: false)
    #expect(try world.cursors().map(\.nextOffset) == [7])
    #expect(FloorReader(world, FloorReader.subscribe(cursor: "c")).offsets == Array(7..<10))
    #expect(FloorReader(world, FloorReader.subscribe()).offsets == Array(7..<10))
  }
}
