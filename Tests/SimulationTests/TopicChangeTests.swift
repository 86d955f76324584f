import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// TOPIC_SET and TOPIC_TRIM, as seen by clients of the protocol.
@Suite struct TopicChangeTests {
  private let small: SmallWorld
  private let admin: ScriptedClient
  private let producer: ScriptedClient
  private let subscriber: ScriptedClient
  private final class Sequence { var next: UInt64 = 0 }
  private let sequence = Sequence()

  init() throws {
    small = try SmallWorld(brokerLoops: 2, storage: StoreConfiguration(MemoryStore()))
    admin = small.connect()
    producer = small.connect()
    subscriber = small.connect()
  }

  // MARK: The scene

  private func create(_ settings: TopicSettings) { change(TopicCreate(topic: "t", settings: settings)) }

  @discardableResult
  private func change(_ frame: some Frame) -> TopicInfo? {
    admin.forget()
    admin.send(frame, stream: 9)
    small.settle()
    return try? admin.frames(on: 9).last?.decoded(TopicInfo.self)
  }

  @discardableResult
  private func set(_ change: (inout TopicSettings) -> Void) -> TopicInfo? {
    var settings = TopicSettings()
    change(&settings)
    return self.change(TopicSet(topic: "t", settings: settings))
  }

  private func refusal() throws -> Fault? { try admin.fault(on: 9) }

  private func open() {
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    small.settle()
  }

  /// Publishes as many of `count` records as are granted. Returns their number.
  @discardableResult
  private func publish(_ count: Int) throws -> Int {
    let opened = try producer.frames(on: 1).filter { $0.header.type == .publishOpened }
      .map { try $0.decoded(PublishOpened.self).grantedThrough }
    let demands = try producer.frames(on: 1).filter { $0.header.type == .demand }
      .map { try $0.decoded(Demand.self).grantedThrough }
    let granted = (opened + demands).max() ?? 0
    let fits = min(count, Int(clamping: granted - min(granted, sequence.next)))
    guard fits > 0 else { return 0 }
    producer.publish(
      (0..<fits).map { Array("\(Int(sequence.next) + $0)".utf8) }, from: sequence.next, stream: 1)
    sequence.next += UInt64(fits)
    small.settle()
    return fits
  }

  /// The offset at which a late subscriber starts, and the number of records before the live ones.
  private func late(_ stream: UInt32 = 5) throws -> (first: UInt64, count: UInt64) {
    let client = small.connect()
    client.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 10_000), stream: stream)
    small.settle()
    let place = try #require(client.frames(on: stream).first).decoded(Subscribed.self)
    let sent = client.frames(on: stream).filter { $0.header.type == .deliver }.reduce(0) { $0 + $1.records }
    client.close()
    small.settle()
    return (place.nextOffset, UInt64(sent))
  }

  private func delivered(to client: ScriptedClient, _ stream: UInt32 = 1) -> Int {
    client.frames(on: stream).filter { $0.header.type == .deliver }.reduce(0) { $0 + $1.records }
  }

  // MARK: Settings

  @Test(arguments: [TopicSettings.Storage.memory, .durable])
  func smallerLimitsDropAtOnceAndLargerOnesBringNothingBack(storage: TopicSettings.Storage) throws {
    var settings = TopicSettings()
    settings.storage = storage
    create(settings)
    open()
    try publish(100)
    #expect(try late() == (0, 100))
    let info = try #require(set { $0.replayRecords = 10 })
    #expect(info.settings.replayRecords == 10 && info.isStated && info.settings.storage == storage)
    #expect(try late() == (90, 10))
    set { $0.replayRecords = TopicSettings.unlimited }
    if storage == .memory { #expect(try late().count <= 100) }
    try publish(5)
    #expect(try late().first + late().count == 105)
  }

  @Test func whatDecidesHowRecordsAreKeptCantBeChanged() throws {
    create(TopicSettings(replayRecords: 5))
    let before = try #require(change(TopicShow(topic: "t")))
    let changes: [(name: String, change: (inout TopicSettings) -> Void)] = [
      ("scope", { $0.scope = .whileConnected }), ("compact", { $0.compact = true }),
      ("storage", { $0.storage = .durable }), ("sync", { $0.sync = .os }),
    ]
    for (name, change) in changes {
      set {
        $0.replayRecords = 7
        change(&$0)
      }
      let fault = try #require(try refusal())
      #expect(fault.code == .invalidSetting && fault.message.contains("another \(name)"), "\(fault)")
    }
    #expect(change(TopicShow(topic: "t"))?.settings == before.settings)
    // Setting the present value changes nothing.
    #expect(set { $0.scope = .forever }?.settings == before.settings)
    change(TopicSet(topic: "nowhere", settings: TopicSettings()))
    #expect(try refusal()?.code == .unknownTopic)
  }

  @Test func producersWaitForTheSlowestFromWhenTheTopicIsLossless() throws {
    var settings = TopicSettings()
    settings.bufferRecords = 10
    create(settings)
    subscriber.send(Subscribe(topic: "t", start: .new, grantedThrough: 5), stream: 1)
    open()
    try publish(100)
    #expect(sequence.next == 100)
    set { $0.flow = .lossless }
    // Earlier grants still apply; after that, producers may publish only up to the subscriber's demand plus the buffer.
    while try publish(1000) > 0 {}
    let stopped = sequence.next
    subscriber.send(Demand(grantedThrough: stopped), stream: 1)
    small.settle()
    while try publish(1000) > 0 {}
    #expect(sequence.next <= stopped + 20 && sequence.next > stopped)
    #expect(delivered(to: subscriber) == Int(stopped))
    let held = change(TopicShow(topic: "t"))
    #expect(held?.holds.contains { $0.reason == .subscribers && $0.milliseconds > 0 } == true)
    set { $0.flow = .free }
    #expect(try publish(50) == 50)
    set { $0.flow = .lossless }
    while try publish(1000) > 0 {}
    subscriber.send(Demand(grantedThrough: .max), stream: 1)
    small.settle()
    #expect(delivered(to: subscriber) == Int(sequence.next))
    #expect(!subscriber.types.contains(.lag))
  }

  @Test func aGroupCountsFromWhenTheTopicIsLossless() throws {
    var settings = TopicSettings(replayRecords: 0)
    settings.bufferRecords = 10
    create(settings)
    let group = JoinGroup.Settings(acknowledgement: .automatic)
    subscriber.send(
      JoinGroup(topic: "t", group: "g", start: .new, settings: group, grantedThrough: 1), stream: 1)
    open()
    try publish(3)
    set { $0.flow = .lossless }
    while try publish(100_000) > 0 {}
    subscriber.send(Demand(grantedThrough: .max), stream: 1)
    small.settle()
    while try publish(1000) > 0, sequence.next < 200_000 {}
    small.settle(.seconds(1))
    #expect(!subscriber.types.contains(.lag))
    #expect(delivered(to: subscriber) == Int(sequence.next))
  }

  @Test func connectionFollowsTheSetting() throws {
    create(TopicSettings())
    open()
    try publish(1)
    set { $0.connect = .manual }
    #expect(change(TopicShow(topic: "t"))?.settings.connect == .manual)
    #expect(small.broker.core.registry.find("t")?.isConnected == false)
    set { $0.connect = .auto(2) }
    subscriber.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    small.settle()
    #expect(small.broker.core.registry.find("t")?.isConnected == false)
    set { $0.connect = .auto(1) }
    #expect(small.broker.core.registry.find("t")?.isConnected == true)
    // Setting the same value again disconnects nothing.
    set { $0.connect = .manual }
    change(TopicConnect(topic: "t"))
    set {
      $0.connect = .manual
      $0.replayRecords = 3
    }
    #expect(small.broker.core.registry.find("t")?.isConnected == true)
  }

  @Test func aTopicThatIsToGoIsFoundByTheRound() throws {
    create(TopicSettings())
    set { $0.autoDelete = true }
    small.settle(.seconds(60))
    #expect(small.broker.core.registry.find("t") == nil)
  }

  @Test func producersThatAreLostAlreadyCount() throws {
    create(TopicSettings())
    open()
    try publish(1)
    producer.send(Cancel(), stream: 1)
    small.settle()
    set { $0.whenProducerLost = .fail(after: 1_000) }
    small.settle(.seconds(2))
    #expect(small.broker.core.registry.find("t")?.epoch.condition == .ended)
  }

  // MARK: Trimming

  @Test(arguments: [TopicSettings.Storage.memory, .durable])
  func lateSubscribersGetWhatIsLeft(storage: TopicSettings.Storage) throws {
    var settings = TopicSettings()
    settings.storage = storage
    create(settings)
    open()
    for _ in 0..<10 { try publish(10) }
    let info = try #require(change(TopicTrim(topic: "t", .from(37))))
    #expect(info.summary.firstOffset == 37 && info.summary.nextOffset == 100 && info.summary.records == 63)
    #expect(try late() == (37, 63))
    #expect(change(TopicTrim(topic: "t", .newest(4)))?.summary.firstOffset == 96)
    // Dropped records stay dropped.
    #expect(change(TopicTrim(topic: "t", .from(5)))?.summary.firstOffset == 96)
    #expect(change(TopicTrim(topic: "t", .newest(50)))?.summary.firstOffset == 96)
    change(TopicTrim(topic: "t", .from(101)))
    #expect(try refusal()?.code == .invalidSetting)
    #expect(try late() == (96, 4))
    let purged = try #require(change(TopicTrim(topic: "t", .newest(0))))
    #expect(
      purged.summary.records == 0 && purged.summary.firstOffset == 100 && purged.summary.nextOffset == 100)
    #expect(try late() == (100, 0))
    // In a durable topic they count once they have left the store, which has dropped whole batches.
    #expect(purged.dropped[.trim].records == 100 && purged.dropped.total == purged.dropped[.trim])
    try publish(3)
    #expect(try late() == (100, 3))
    let metrics = small.broker.metrics
    #expect(metrics[.trims] == 5 && metrics[.recordsTrimmed] == 100)
    change(TopicTrim(topic: "nowhere", .newest(0)))
    #expect(try refusal()?.code == .unknownTopic)
  }

  @Test func subscribersThatAreBehindLagOrFail() throws {
    create(TopicSettings())
    open()
    try publish(100)
    subscriber.send(Subscribe(topic: "t", start: .earliest, lag: .skip, grantedThrough: 10), stream: 1)
    subscriber.send(Subscribe(topic: "t", start: .earliest, lag: .fail, grantedThrough: 10), stream: 2)
    small.settle()
    change(TopicTrim(topic: "t", .newest(0)))
    try publish(5)
    for stream in [1, 2] as [UInt32] { subscriber.send(Demand(grantedThrough: 50), stream: stream) }
    small.settle()
    let lag = try #require(subscriber.frames(on: 1).first { $0.header.type == .lag }).decoded(Lag.self)
    #expect(lag.missed == 90 && lag.nextOffset == 100)
    #expect(delivered(to: subscriber, 1) == 15 && delivered(to: subscriber, 2) == 10)
    #expect(try subscriber.fault(on: 2)?.code == .lagged)
  }

  @Test func whatALosslessTopicOwesStaysUntilItIsTaken() throws {
    var settings = TopicSettings()
    settings.flow = .lossless
    create(settings)
    subscriber.send(Subscribe(topic: "t", grantedThrough: 10), stream: 1)
    open()
    try publish(100)
    change(TopicTrim(topic: "t", .newest(0)))
    #expect(try late() == (100, 0))
    subscriber.send(Demand(grantedThrough: .max), stream: 1)
    small.settle()
    #expect(delivered(to: subscriber) == 100 && !subscriber.types.contains(.lag))
  }

  @Test func whatProducersHaveBufferedGoes() throws {
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 10
    create(settings)
    open()
    while try publish(1000) > 0 {}
    #expect(sequence.next == 10)
    change(TopicTrim(topic: "t", .newest(0)))
    // The buffer has room again.
    while try publish(1000) > 0 {}
    #expect(sequence.next == 20)
    #expect(try late() == (10, 10))
  }

  @Test func aCompactTopicCountsKeys() throws {
    var settings = TopicSettings()
    settings.compact = true
    create(settings)
    open()
    var batch = BatchBuilder()
    for key in ["a", "b", "a", "c", "d"] {
      Array(key.utf8).withUnsafeBytes { key in
        [1].withUnsafeBytes { try? batch.append(key: key, headers: [], payload: $0) }
      }
    }
    producer.publish(batch, from: 0, stream: 1)
    small.settle()
    #expect(try late() == (1, 4))
    #expect(change(TopicTrim(topic: "t", .newest(2)))?.summary.records == 2)
    #expect(try late() == (3, 2))
    #expect(change(TopicTrim(topic: "t", .from(4)))?.summary.records == 1)
    #expect(change(TopicTrim(topic: "t", .newest(0)))?.summary.records == 0)
  }
}

extension ScriptedClient.Received {
  /// The number of records of a DELIVER.
  fileprivate var records: Int {
    body.withUnsafeBytes { bytes in (try? DeliverHeader.decode(bytes)).map { Int($0.0.count) } ?? 0 }
  }
}
