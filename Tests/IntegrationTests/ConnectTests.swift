import SluiceWire
import TestSupport
import Testing

/// Topics that grant their producers records only while they are connected, and topics that restart.
@Suite(.onItsOwnThread) struct ConnectTests {
  private func settings(_ connect: TopicSettings.Connect) -> TopicSettings {
    var settings = TopicSettings()
    settings.connect = connect
    return settings
  }

  private func receiveConnected(_ isConnected: Bool, _ client: RawClient) throws {
    try client.receive(until: isConnected ? "CONNECTED" : "DISCONNECTED") {
      client.publications[1]!.isConnected == isConnected
    }
  }

  @Test func aSourceStartsWithTheNthSubscriberAndStopsWithTheLast() throws {
    let broker = try BrokerProcess()
    let source = try broker.client("source")
    let other = try broker.client("other")
    try source.create("t", settings(.auto(2)))
    try source.openPublication("t", stream: 1, role: .source)
    try receiveConnected(false, source)
    #expect(source.publications[1]!.granted == 0)

    try other.subscribe("t", stream: 1)
    try source.roundTrip()
    #expect(source.publications[1]!.isConnected == false)
    try other.subscribe("t", stream: 2)
    try receiveConnected(true, source)
    try source.receive(until: "demand") { source.publications[1]!.granted > 0 }

    // One subscriber remains, so the topic stays connected.
    try other.cancel(stream: 1)
    try source.roundTrip()
    #expect(source.publications[1]!.isConnected == true)
    other.close()
    try receiveConnected(false, source)
    // It takes two subscribers again.
    let third = try broker.client("third")
    try third.subscribe("t", stream: 1)
    try source.roundTrip()
    #expect(source.publications[1]!.isConnected == false)
    try third.subscribe("t", stream: 2)
    try receiveConnected(true, source)
  }

  @Test func aSourceOfATopicThatIsConnectedAlreadyStartsAtOnce() throws {
    let client = try BrokerProcess().client()
    try client.openPublication("t", stream: 1, role: .source)
    try receiveConnected(true, client)
  }

  @Test func manualTopicsAreConnectedByRequest() throws {
    let broker = try BrokerProcess()
    let source = try broker.client("source")
    let other = try broker.client("other")
    try source.create("t", settings(.manual))
    try source.openPublication("t", stream: 1, role: .source)
    try other.subscribe("t", stream: 1)
    try source.roundTrip()
    #expect(source.publications[1]!.granted == 0)
    try other.connect("t")
    try receiveConnected(true, source)
    try source.publish(["a"], stream: 1)
    try other.receiveRecords(1, stream: 1)
    try other.disconnect("t")
    try receiveConnected(false, source)
    // Repeating it is no error.
    try other.disconnect("t")
  }

  @Test func otherTopicsArentConnectedByRequest() throws {
    let client = try BrokerProcess().client()
    try client.create("t", settings(.auto(1)))
    try client.send(TopicConnect(topic: "t"), stream: 5)
    try client.expectFault(.unsupported, stream: 5)
    try client.send(TopicConnect(topic: "a..b"), stream: 5)
    try client.expectFault(.invalidTopic, stream: 5)
  }

  // MARK: Scope

  private var whileConnected: TopicSettings {
    var settings = TopicSettings()
    settings.scope = .whileConnected
    return settings
  }

  @Test func aTopicStartsOverWhenItsLastSubscriberLeaves() throws {
    let client = try BrokerProcess().client()
    try client.create("t", whileConnected)
    try client.openPublication("t", stream: 1)
    client.publications[1]!.mayStartOver = true
    let first = try client.subscribe("t", stream: 2)
    try client.publish(["a", "b"], stream: 1)
    try client.receiveRecords(2, stream: 2)
    // While a subscriber is attached, later ones get the earlier records.
    try client.subscribe("t", stream: 3)
    try client.receiveRecords(2, stream: 3)
    try client.cancel(stream: 2)
    try client.cancel(stream: 3)

    try client.publish(["c"], stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    let second = try client.subscribe("t", stream: 4)
    #expect(second.epoch != first.epoch)
    try client.receiveRecords(1, stream: 4)
    #expect(client.subscriptions[4]!.texts == ["c"])
    // A subscriber that names the old epoch gets an error.
    try client.sendSubscribe("t", stream: 5, from: .offset(2), epoch: first.epoch)
    try client.receiveEnd(stream: 5)
    #expect(client.events(5).last == .fault(.epochChanged))
  }

  @Test func anEndedTopicStartsOverForThoseWhoComeLater() throws {
    let client = try BrokerProcess().client()
    try client.create("t", whileConnected)
    try client.subscribe("t", stream: 1, granted: 1)
    try client.openPublication("t", stream: 2)
    try client.openPublication("t", stream: 3)
    try client.publish(["a", "b"], stream: 2)
    try client.complete(stream: 2)
    try client.receive(until: "the other producer to hear of it") { client.publications[3]!.end != nil }
    #expect(client.publications[3]!.end == .complete(.finished))

    // Publishing continues in the next epoch, while the first subscriber still reads the former one.
    try client.publishAll(["c"], to: "t")
    try client.subscribe("t", stream: 4)
    try client.receiveRecords(1, stream: 4)
    #expect(client.subscriptions[4]!.texts == ["c"])
    try client.demand(2, stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(client.subscriptions[1]!.texts == ["a", "b"])
    #expect(client.events(1).last == .complete(.finished))
    #expect(try client.show("t").summary.ending == nil)
  }

  @Test func aSubscriptionThatLeavesTheLagToTheTopicGetsTheTopics() throws {
    let client = try BrokerProcess().client()
    var settings = TopicSettings(replayRecords: 0)
    settings.lag = .fail
    try client.create("t", settings)
    try client.publishAll((0..<5).map { "\($0)" }, to: "t")
    try client.sendSubscribe("t", stream: 1, from: .offset(0), lag: nil)
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.lagged))
    try client.subscribe("t", stream: 2, from: .offset(0), lag: .skip)
  }
}
