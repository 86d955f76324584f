import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Durable topics across a broker's end, orderly or not.
@Suite struct DurableTopicTests {
  private static func texts(_ range: Range<Int>) -> [String] { range.map { "record \($0)" } }

  @Test(arguments: [TopicSettings.Sync.always, .interval(5), .os])
  func recordsAndEndingsOutliveTheBroker(sync: TopicSettings.Sync) throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable(sync))
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 7)
    try client.publish(Self.texts(0..<100), stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    let epoch = try client.show("t").summary.epoch
    try setting.restart()

    client = try setting.client()
    #expect(try client.show("t").summary.epoch == epoch)
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(100, stream: 1)
    #expect(client.subscriptions[1]!.texts == Self.texts(0..<100))
    try client.openPublication("t", stream: 2, acknowledgement: .durable, producer: 7, from: 0)
    #expect(client.publications[2]!.sent == 100)
    try client.publish(Self.texts(100..<150), stream: 2)
    try client.receiveRecords(150, stream: 1)
    try client.complete(.failure(code: .producerFailure, message: "enough"), stream: 2)
    try client.receiveEnd(stream: 1)
    try setting.restart()

    client = try setting.client()
    try client.subscribe("t", stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(client.subscriptions[1]!.texts == Self.texts(0..<150))
    #expect(
      client.events(1).last == .complete(.failure(code: .producerFailure, message: "enough")))
  }

  @Test func withSyncAlwaysNobodyHasARecordBeforeTheDiskDoes() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 2)
    try setting.store.waitForHeldCommit()
    try client.roundTrip()
    #expect(client.subscriptions[1]!.delivered == 0)
    #expect(client.publications[2]!.acknowledged == 0)
    setting.store.release()
    try client.receiveAcknowledgements(stream: 2)
    try client.receiveRecords(10, stream: 1)
  }

  @Test func whileTheDiskStopsProducersNoSubscriberIsNamed() throws {
    let setting = try DurableSetting()
    let (reader, publisher) = (try setting.client(), try setting.client())
    var settings = DurableSetting.durable()
    settings.flow = .lossless
    settings.bufferBytes = 100
    try publisher.create("t", settings)
    try reader.subscribe("t", stream: 1)
    try publisher.openPublication("t", stream: 1)
    try publisher.receive(until: "a grant") { publisher.publications[1]!.granted > 0 }
    setting.store.hold()
    // More than the buffer, while the reader can't get any of it.
    try publisher.publish([String(repeating: "x", count: 200)], stream: 1)
    try setting.store.waitForHeldCommit()
    try publisher.roundTrip()
    let info = try publisher.show("t")
    #expect(info.subscriptions.map(\.holding) == [0])
    #expect(info.publications.map(\.reason) == [.storageBacklog])
    #expect(info.holds.contains { $0.reason == .storageBacklog && $0.milliseconds > 0 })
    setting.store.release()
    try reader.receiveRecords(1, stream: 1)
  }

  @Test func whoLeavesGetsItsLastAcknowledgementFirst() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.openPublication("t", stream: 1)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 1)
    try setting.store.waitForHeldCommit()
    try client.send(Cancel(), stream: 1)
    try client.roundTrip()
    #expect(client.publications[1]!.end == nil)
    setting.store.release()
    try client.receive(until: "CANCELLED") { client.publications[1]!.end == .cancelled }
    #expect(client.publications[1]!.acknowledged == 10)
  }

  @Test(arguments: [true, false])
  func whoLeavesAndDoesNotWaitIsSentAway(byCancelling: Bool) throws {
    let setting = try DurableSetting()
    let observer = try setting.client()
    let client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.openPublication("t", stream: 1)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 1)
    try setting.store.waitForHeldCommit()
    if byCancelling {
      try client.send(Cancel(), stream: 1)
    } else {
      try client.send(Complete(.finished), stream: 1)
    }
    try client.send(PublishOpen(topic: "u", acknowledgement: .received), stream: 1)
    try client.expectFault(.invalidStream, stream: 0)
    // None of its streams is left that could be notified of the topic.
    setting.store.release()
    try eventually("it is gone") { try observer.show("t").summary.publications == 0 }
    try observer.delete("t")
    try observer.roundTrip()
  }

  @Test func whoAsksWhileADeletionIsOnItsWayHearsWhenItIsDone() throws {
    let setting = try DurableSetting()
    try setting.client().create("t", DurableSetting.durable())
    setting.store.hold()
    let core = setting.broker.core
    let topic = try core.registry.delete("t")
    core.stores.kick()
    try setting.store.waitForHeldCommit()
    let isDone = Flag()
    topic.whenCommitted { _ in isDone.raise() }
    core.stores.kick()
    setting.store.release()
    try eventually("it is told") { isDone.isRaised }
  }

  @Test func aTopicsEndIsOnDiskBeforeAnybodyHearsOfIt() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", DurableSetting.durable(.os))
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 2)
    try client.send(Complete(.finished), stream: 2)
    try client.receiveRecords(10, stream: 1)
    try setting.store.waitForHeldCommit()
    try client.roundTrip()
    #expect(!client.subscriptions[1]!.isOver)
    #expect(client.publications[2]!.end == nil)
    try client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 3)
    try client.expectFault(.topicEnded, stream: 3)
    setting.store.release()
    try client.receiveEnd(stream: 1)
    try client.receive(until: "CANCELLED") { client.publications[2]!.end == .cancelled }
  }

  @Test func withAnIntervalRecordsAreHandedOnAtOnceAndAcknowledgedAsAsked() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", DurableSetting.durable(.interval(1)))
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    try client.openPublication("t", stream: 3, acknowledgement: .durable)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 2)
    try client.publish(Self.texts(10..<20), stream: 3)
    try client.receiveAcknowledgements(stream: 2)
    try client.receiveRecords(20, stream: 1)
    try setting.store.waitForHeldCommit()
    try client.roundTrip()
    #expect(client.publications[3]!.acknowledged == 0)
    setting.store.release()
    try client.receiveAcknowledgements(stream: 3)
  }

  @Test func whatWasAcknowledgedIsThereAfterACut() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("always", DurableSetting.durable())
    try client.create("os", DurableSetting.durable(.os))
    for (topic, stream) in [("always", UInt32(1)), ("os", 2)] {
      try client.openPublication(topic, stream: stream, acknowledgement: .durable, producer: 5)
      try client.publish(Self.texts(0..<10), stream: stream)
      try client.receiveAcknowledgements(stream: stream)
    }
    try client.subscribe("os", stream: 3)
    setting.store.hold()
    for stream in UInt32(1)...2 { try client.publish(Self.texts(10..<15), stream: stream) }
    // Without sync `always`, subscribers get records before they are on disk.
    try client.receiveRecords(15, stream: 3)
    try setting.store.waitForHeldCommit()
    let epochs = try ["always", "os"].map { try client.show($0).summary.epoch }
    try setting.restart(cutOff: true)

    client = try setting.client()
    for (topic, stream) in [("always", UInt32(1)), ("os", 2)] {
      try client.openPublication(
        topic, stream: stream, acknowledgement: .durable, producer: 5, from: 10)
      #expect(client.publications[stream]!.sent == 10)
      try client.publish(Self.texts(10..<12), stream: stream)
    }
    // No subscriber had the lost records of `always`. A subscriber that had those of `os` continues where its two epochs part.
    let always = try client.subscribe("always", stream: 3, from: .offset(10), epoch: epochs[0])
    #expect(always.epoch == epochs[0])
    let os = try client.subscribe("os", stream: 4, from: .offset(15), epoch: epochs[1])
    #expect(os.epoch != epochs[1])
    #expect(os.nextOffset == 10)
    for stream in UInt32(3)...4 {
      try client.receiveRecords(2, stream: stream)
      #expect(client.subscriptions[stream]!.texts == Self.texts(10..<12))
    }
  }

  @Test func lateSubscribersAreServedFromTheStore() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable(.os)
    settings.replayBytes = TopicSettings.unlimited
    try client.create("t", settings)
    try client.openPublication("t", stream: 1, acknowledgement: .durable)
    // Several times the records retained in memory.
    let count = 12_000
    func payload(_ number: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1000 + number % 100)
    }
    for first in stride(from: 0, to: count, by: 100) {
      try client.publish((first..<first + 100).map(payload), stream: 1)
    }
    try client.receiveAcknowledgements(stream: 1)
    let topic = try #require(setting.broker.core.registry.find("t"))
    try eventually("memory is for subscribers that follow the head") { topic.epoch.log.oldestOffset > 1000 }

    let other = try setting.client()
    try other.sendSubscribe("t", stream: 1)
    var bad = 0
    other.subscriptions[1]!.keepsPayloads = false
    other.subscriptions[1]!.onRecord = { offset, body in
      if !body.elementsEqual(payload(Int(offset))) { bad += 1 }
    }
    try other.receiveRecords(UInt64(count), stream: 1)
    #expect(bad == 0)
    try other.receive(until: "LIVE") { other.subscriptions[1]!.isLive }
    #expect(
      other.events(1) == [
        .subscribed(next: 0, live: UInt64(count)), .records(0..<UInt64(count)), .live(UInt64(count)),
      ])

    // With small demands across the border between memory and store; from the store alone if nothing is left in memory.
    let border = min(topic.epoch.log.oldestOffset, UInt64(count) - 60)
    try other.subscribe("t", stream: 2, from: .offset(border - 25), granted: 10)
    for total in stride(from: UInt64(10), through: 60, by: 10) {
      try other.receiveRecords(total, stream: 2)
      try other.demand(total + 10, stream: 2)
    }
    #expect(
      Array(other.subscriptions[2]!.payloads.prefix(60))
        == (0..<60).map { payload(Int(border) - 25 + $0) })
  }

  @Test func aStartInTimeIsFoundInTheStore() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable()
    settings.replayBytes = TopicSettings.unlimited
    try client.create("t", settings)
    try client.openPublication("t", stream: 1, acknowledgement: .durable)
    let filler = [[UInt8]](repeating: [UInt8](repeating: 0, count: 40_000), count: 1)
    for _ in 0..<200 {
      try client.publish(filler, stream: 1)
      if client.publications[1]!.sent % 20 == 0 { try client.receiveAcknowledgements(stream: 1) }
    }
    try client.receiveAcknowledgements(stream: 1)
    try client.subscribe("t", stream: 2)
    try client.receiveRecords(200, stream: 2)
    let times = client.subscriptions[2]!.times
    let wanted = times[60]
    let expected = UInt64(times.firstIndex { $0 >= wanted }!)
    let found = try client.subscribe("t", stream: 3, from: .time(wanted), granted: 1)
    #expect(found.nextOffset == expected)
    try client.receiveRecords(1, stream: 3)
  }

  @Test func aDamagedBatchIsMissingAloneAndReported() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable()
    settings.replayBytes = TopicSettings.unlimited
    try client.create("t", settings)
    try client.openPublication("t", stream: 1, acknowledgement: .durable)
    for _ in 0..<100 {
      try client.publish([[UInt8](repeating: 3, count: 60_000)], stream: 1)
      try client.receiveAcknowledgements(stream: 1)
    }
    let id = try #require(setting.broker.core.registry.find("t")?.storage?.id)
    setting.store.memory.damage(id, batchAt: 10) { $0[500] ^= 1 }
    try client.subscribe("t", stream: 2)
    try client.receiveRecords(99, stream: 2)
    #expect(client.events(2).contains(.lag(missed: 1, next: 11)))
    #expect(setting.events.contains(.damaged(topic: "t", from: 10, before: 11)))
    try client.sendSubscribe("t", stream: 3, lag: .fail)
    try client.receiveEnd(stream: 3)
    #expect(client.events(3).last == .fault(.lagged))
    #expect(client.subscriptions[3]!.delivered == 10)
  }

  @Test func withoutRoomPublishersAreToldAndReadersGoOn() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 9)
    try client.publish(Self.texts(0..<10), stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    setting.store.fail(.full)
    try client.publish(Self.texts(10..<20), stream: 1)
    try client.receive(until: "the end of the publication") { client.publications[1]!.end != nil }
    #expect("\(client.publications[1]!.end!)".contains("storage-full"))
    try client.send(PublishOpen(topic: "t", acknowledgement: .durable), stream: 4)
    try client.expectFault(.storageFull, stream: 4)
    try client.subscribe("t", stream: 2, granted: 10)
    try client.receiveRecords(10, stream: 2)

    setting.store.fail(nil)
    try eventually("it goes on") { setting.events.contains(.recovered) }
    client = try setting.client()
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 9, from: 10)
    try client.subscribe("t", stream: 2)
    try client.receiveRecords(20, stream: 2)
    #expect(client.subscriptions[2]!.texts == Self.texts(0..<20))
  }

  @Test func aTopicThatGoesMakesRoomThoughItCameWithRecordsThatFindNone() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    for topic in ["old", "new"] { try client.create(topic, DurableSetting.durable()) }
    try client.publishAll(Self.texts(0..<10), to: "old")
    try client.openPublication("new", stream: 1)
    setting.store.hold()
    try client.publish(Self.texts(0..<10), stream: 1)
    try setting.store.waitForHeldCommit()
    // Both wait for the next commit.
    try client.publish(Self.texts(10..<20), stream: 1)
    try client.send(TopicDelete(topic: "old"), stream: 2)
    try client.roundTrip()
    setting.store.fail(.full, recordsOnly: true)
    setting.store.release()
    _ = try client.receive("DONE") { $0.stream == 2 && $0.type == .done }
    #expect(try setting.store.contents().topics.map(\.row.name) == ["new"])
    setting.store.fail(nil)
    try eventually("all of it is there") {
      try setting.store.contents().topics.first?.extent.head == 20
    }
  }

  @Test func topicsThatTogetherFindNoRoomFindItOneByOne() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    for stream in 1...3 as ClosedRange<UInt32> {
      try client.create("t\(stream)", DurableSetting.durable())
      try client.openPublication("t\(stream)", stream: stream)
    }
    setting.store.limit(to: 10_000)
    setting.store.hold()
    try client.publish(["first"], stream: 1)
    try setting.store.waitForHeldCommit()
    // All of these wait for the next commit, which is too large.
    for stream in 1...3 as ClosedRange<UInt32> {
      try client.publish([[UInt8](repeating: 0, count: 5_000)], stream: stream)
    }
    try client.roundTrip()
    setting.store.release()
    try eventually("all of it is there") {
      try setting.store.contents().topics.map(\.extent.head) == [2, 1, 1]
    }
    try eventually("it goes on") { setting.events.contains(.recovered) }
    try client.openPublication("t1", stream: 4, acknowledgement: .durable)
    try client.publish(["last"], stream: 4)
    try client.receiveAcknowledgements(stream: 4)
  }

  @Test func noMoreWaitsThanTheStoreCouldTake() throws {
    let setting = try DurableSetting(limit: 256 << 10)
    let client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.openPublication("t", stream: 1)
    try client.roundTrip()
    #expect((1...(256 << 10) / 8).contains(client.publications[1]!.bytesGranted))
  }

  @Test func aSlowDiskStopsItsPublishersAndNoOthers() throws {
    let setting = try DurableSetting { $0.limits.topicBacklog = 64 << 10 }
    let client = try setting.client()
    try client.create("slow", DurableSetting.durable())
    try client.openPublication("slow", stream: 1)
    try client.openPublication("quick", stream: 2)
    setting.store.hold()
    let record = [UInt8](repeating: 0, count: 8 << 10)
    while client.publications[1]!.sent < 4 { try client.publish([record], stream: 1) }
    for _ in 0..<100 { try client.publish([record], stream: 2) }
    try client.receiveAcknowledgements(stream: 2)
    let waiting = try #require(setting.broker.core.registry.find("slow")).state.withLock {
      $0.tail!.waitingBytes
    }
    #expect(waiting <= 80 << 10)
    setting.store.release()
    for _ in 0..<100 { try client.publish([record], stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
  }

  @Test func limitsHoldInTheStoreToo() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    var settings = DurableSetting.durable()
    settings.replayRecords = 50
    try client.create("records", settings)
    settings.replayRecords = TopicSettings.unlimited
    settings.replayBytes = 300_000
    try client.create("bytes", settings)
    for (topic, stream) in [("records", UInt32(1)), ("bytes", 2)] {
      try client.openPublication(topic, stream: stream, acknowledgement: .durable)
      for _ in 0..<100 {
        try client.publish([[UInt8](repeating: 1, count: 10_000)], stream: stream)
        try client.receiveAcknowledgements(stream: stream)
      }
    }
    for _ in 0..<2 {
      #expect(try client.show("records").summary.firstOffset == 50)
      let bytes = try client.show("bytes").summary
      #expect(bytes.nextOffset == 100)
      #expect(bytes.firstOffset >= 60 && bytes.firstOffset <= 70)
      #expect(bytes.bytes >= 300_000 && bytes.bytes < 400_000)
      try setting.restart()
      client = try setting.client()
    }
  }

  @Test func aBufferMayBeAsLargeAsANumberCanSay() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable()
    settings.flow = .lossless
    settings.bufferBytes = .max
    settings.bufferRecords = .max
    try client.create("t", settings)
    try client.publishAll(Self.texts(0..<10), to: "t")
    #expect(try client.show("t").summary.nextOffset == 10)
  }

  @Test func limitsAreKeptBesideBatchesThatSayWhatCannotBe() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable()
    settings.replayBytes = 100_000
    try client.create("t", settings)
    let id = try #require(setting.broker.core.registry.find("t")?.storage?.id)
    try client.openPublication("t", stream: 1, acknowledgement: .durable)
    func publish(_ count: Int) throws {
      for _ in 0..<count {
        try client.publish([[UInt8](repeating: 1, count: 10_000)], stream: 1)
        try client.receiveAcknowledgements(stream: 1)
      }
    }
    try publish(5)
    for offset in [UInt64(0), 3] {
      setting.store.memory.damage(id, batchAt: offset) { value in
        for byte in 16..<24 { value[byte] = 0xFF }
      }
    }
    try publish(30)
    let summary = try client.show("t").summary
    #expect(summary.nextOffset == 35)
    #expect(summary.firstOffset > 20 && summary.firstOffset <= 25)
  }

  @Test func cursorsAndGroupsGoOnWhereTheyWere() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.publishAll(Self.texts(0..<20), to: "t")
    try client.subscribe("t", stream: 1, granted: 10, cursor: "c")
    try client.receiveRecords(10, stream: 1)
    try client.send(Commit(nextOffset: 7), stream: 1)
    try client.roundTrip()
    try setting.restart()
    client = try setting.client()
    #expect(try client.subscribe("t", stream: 1, granted: 1, cursor: "c").nextOffset == 7)
    try client.cancel(stream: 1)
    try client.deleteCursor("c", of: "t")
    try setting.restart(cutOff: true)
    client = try setting.client()
    #expect(try client.subscribe("t", stream: 1, granted: 1, cursor: "c").nextOffset == 0)
  }

  @Test func aDeletedTopicIsGone() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.publishAll(Self.texts(0..<20), to: "t")
    let epoch = try client.show("t").summary.epoch
    try client.delete("t")
    try setting.restart(cutOff: true)
    client = try setting.client()
    #expect(try client.list(limit: 10).topics.isEmpty)
    try client.create("t", DurableSetting.durable())
    #expect(try client.show("t").summary.epoch != epoch)
    #expect(try client.show("t").summary.nextOffset == 0)
  }

  @Test func withoutAStoreThereAreNone() throws {
    let registry = TopicRegistry(BrokerConfiguration(), identity: 1)
    #expect {
      try registry.create("t", DurableSetting.durable())
    } throws: { ($0 as? WireError)?.code == .unsupported }
  }

  @Test func whatCannotBeDurableIsRefused() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    var settings = DurableSetting.durable()
    settings.scope = .whileConnected
    try client.send(TopicCreate(topic: "a", settings: settings), stream: 1)
    try client.expectFault(.invalidSetting, stream: 1)
  }
}
