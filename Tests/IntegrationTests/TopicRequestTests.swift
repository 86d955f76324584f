import SluiceWire
import TestSupport
import Testing

/// Creating, listing and showing topics.
@Suite(.onItsOwnThread) struct TopicRequestTests {
  @Test func aTopicIsShownWithEverybodyWhoIsAttached() throws {
    let broker = try BrokerProcess("--replay-records", "100", "--producer-window", "64")
    let one = try broker.client("one")
    let two = try broker.client("two")
    try one.openPublication("t", stream: 3)
    try one.publish(["a", "b", "c"], stream: 3)
    try one.receiveAcknowledgements(stream: 3)
    try one.subscribe("t", stream: 5, granted: 2)
    try two.subscribe("t", stream: 6)
    try one.receiveRecords(2, stream: 5)
    try two.receiveRecords(3, stream: 6)

    let info = try two.show("t")
    #expect(info.summary.topic == "t")
    #expect(info.summary.epoch == two.subscriptions[6]!.epoch)
    #expect(info.summary.firstOffset == 0)
    #expect(info.summary.nextOffset == 3)
    #expect(info.summary.bytes == 15)
    #expect(info.summary.ending == nil)
    #expect(info.summary.subscriptions == 2)
    #expect(info.summary.publications == 1)
    #expect(info.settings.replayRecords == 100)
    #expect(info.settings.replayAge == TopicSettings.unlimited)
    let (first, second) = (info.subscriptions[0], info.subscriptions[1])
    #expect(first.connection < second.connection)
    #expect(
      first
        == .init(
          connection: first.connection, client: "one", stream: 5, state: .replaying, nextOffset: 2,
          granted: 2, sent: 2, slowness: .demand, slow: first.slow, age: first.age))
    #expect(first.slow > 0)
    #expect(
      second
        == .init(
          connection: second.connection, client: "two", stream: 6, state: .live, nextOffset: 3,
          granted: .max, sent: 3))
    #expect(
      info.publications == [
        .init(connection: first.connection, client: "one", stream: 3, granted: 64, received: 3)
      ])
  }

  @Test func topicsAreListedInPagesInTheOrderOfTheirNames() throws {
    let broker = try BrokerProcess()
    let client = try broker.client(maximumFrame: UInt32(Limits.smallestFrame))
    #expect(try client.list(limit: 10) == Topics(topics: [], more: false))
    let names = (0..<150).map { "topic.\($0)" } + ["Z", "ä", "a.b"]
    for name in names.shuffled() {
      try client.subscribe(name, stream: 1 + UInt32(names.firstIndex(of: name)!))
    }
    let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }

    let page = try client.list(limit: 7)
    #expect(page.topics.map(\.topic) == Array(sorted[..<7]))
    #expect(page.more)
    #expect(page.topics.allSatisfy { $0.subscriptions == 1 && $0.nextOffset == 0 })

    var all: [String] = []
    while true {
      let page = try client.list(after: all.last ?? "", limit: .max)
      all += page.topics.map(\.topic)
      guard page.more else { break }
      #expect(!page.topics.isEmpty)
    }
    #expect(all == sorted)
    #expect(try client.list(after: "topic.98", limit: 1).topics.map(\.topic) == ["topic.99"])
    #expect(try client.list(after: "ä", limit: 5) == Topics(topics: [], more: false))
  }

  @Test func aTopicIsCreatedWithSettingsOfItsOwn() throws {
    let client = try BrokerProcess("--replay-bytes", "1MiB").client()
    let info = try client.create("t", TopicSettings(replayRecords: 2))
    #expect(info.settings.replayRecords == 2)
    #expect(info.settings.replayBytes == 1 << 20)
    #expect(info.settings.replayAge == TopicSettings.unlimited)
    #expect(info.settings.flow == .free)
    try client.publishAll(["a", "b", "c"], to: "t")
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(2, stream: 1)
    #expect(client.subscriptions[1]!.texts == ["b", "c"])

    // The same again is no error; anything else is.
    #expect(try client.create("t", TopicSettings(replayRecords: 2)).summary.nextOffset == 3)
    try client.send(TopicCreate(topic: "t", settings: TopicSettings(replayRecords: 3)), stream: 9)
    try client.expectFault(.topicExists, stream: 9)
  }

  @Test func aSettingThatIsntKnownIsTheRequestsError() throws {
    let client = try BrokerProcess().client()
    var frame = TopicCreate(topic: "t", settings: TopicSettings(replayRecords: 2)).encoded(stream: 9)
    frame[frame.count - 9] = 99
    try client.send(raw: frame)
    try client.expectFault(.invalidSetting, stream: 9)
    try client.roundTrip()
  }

  @Test func whatIsNoTopicNameIsTheStreamsError() throws {
    let client = try BrokerProcess().client()
    for name in ["", ".", "a..b", "a b", "*", "a.>", "$internal", String(repeating: "x", count: 256)] {
      try client.send(Subscribe(topic: name, grantedThrough: 1), stream: 1)
      try client.expectFault(.invalidTopic, stream: 1)
      try client.send(PublishOpen(topic: name, acknowledgement: .none), stream: 1)
      try client.expectFault(.invalidTopic, stream: 1)
      try client.send(TopicCreate(topic: name, settings: TopicSettings()), stream: 1)
      try client.expectFault(.invalidTopic, stream: 1)
    }
    #expect(try client.list(limit: 10).topics.isEmpty)
    try client.subscribe(String(repeating: "x", count: 255), stream: 1)
  }

  @Test func thereAreAsManyTopicsAsMayBe() throws {
    let client = try BrokerProcess("--max-topics", "2").client()
    try client.create("a")
    try client.publishAll(["x"], to: "b")
    try client.send(Subscribe(topic: "c", grantedThrough: 1), stream: 1)
    try client.expectFault(.limitReached, stream: 1)
    try client.send(TopicCreate(topic: "c", settings: TopicSettings()), stream: 1)
    try client.expectFault(.limitReached, stream: 1)
    try client.delete("a")
    try client.create("c")
  }

  @Test func aRequestThatIsCancelledIsAnsweredByTheConfirmationAtMost() throws {
    let client = try BrokerProcess().client()
    try client.create("t")
    for _ in 0..<50 {
      try client.send(raw: TopicShow(topic: "t").encoded(stream: 7) + Cancel().encoded(stream: 7))
      // The reply may arrive before CANCELLED.
      if try client.receive().type == .topicInfo { _ = try client.expect(Cancelled.self, stream: 7) }
      // But not after it, since the number may then belong to another stream.
      try client.subscribe("u", stream: 7)
      try client.cancel(stream: 7)
      client.subscriptions[7] = nil
    }
  }
}
