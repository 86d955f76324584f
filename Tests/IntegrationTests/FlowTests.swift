import SluiceWire
import TestSupport
import Testing

/// Producers of topics whose flow isn't free get exactly the demand that subscribers grant.
@Suite(.onItsOwnThread) struct FlowTests {
  private func settings(
    _ flow: TopicSettings.Flow, buffer: UInt64, bytes: UInt64 = 1 << 20,
    withoutSubscribers: TopicSettings.WhenAlone = .hold
  ) -> TopicSettings {
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = flow
    settings.bufferRecords = buffer
    settings.bufferBytes = bytes
    settings.withoutSubscribers = withoutSubscribers
    return settings
  }

  private func receiveGrant(_ total: UInt64, _ client: RawClient, stream: UInt32) throws {
    try client.receive(until: "a grant of \(total); it is \(client.publications[stream]!.granted)") {
      client.publications[stream]!.granted >= total
    }
    try client.roundTrip()
    #expect(client.publications[stream]!.granted == total)
  }

  @Test func aSubscribersDemandReachesTheProducerExactly() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let subscriber = try broker.client("subscriber")
    try producer.create("t", settings(.lossless, buffer: 0))
    try producer.openPublication("t", stream: 1)
    #expect(producer.publications[1]!.granted == 0)

    try subscriber.subscribe("t", stream: 1, granted: 3)
    try receiveGrant(3, producer, stream: 1)
    try producer.publish(["a", "b", "c"], stream: 1)
    try subscriber.receiveRecords(3, stream: 1)
    try producer.roundTrip()
    #expect(producer.publications[1]!.granted == 3)

    try subscriber.demand(4, stream: 1)
    try receiveGrant(4, producer, stream: 1)
  }

  @Test func theSlowestHoldsUpProducersAndIsShown() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let quick = try broker.client("quick")
    let slow = try broker.client("slow")
    try producer.create("t", settings(.lossless, buffer: 2))
    try quick.subscribe("t", stream: 1)
    try slow.subscribe("t", stream: 1, granted: 1)
    try producer.openPublication("t", stream: 1)
    try receiveGrant(3, producer, stream: 1)
    try producer.publish(["a", "b", "c"], stream: 1)
    try quick.receiveRecords(3, stream: 1)
    try slow.receiveRecords(1, stream: 1)
    try producer.receiveAcknowledgements(stream: 1)

    let info = try producer.show("t")
    #expect(info.publications[0].waiting > 0)
    #expect(info.subscriptions.filter { $0.holding > 0 }.map(\.client) == ["slow"])

    // After it disconnects, it no longer blocks producers.
    slow.close()
    try producer.receive(until: "more to be granted") { producer.publications[1]!.granted > 3 }
    #expect(try producer.show("t").subscriptions.allSatisfy { $0.holding == 0 })
  }

  @Test func nothingIsLostHoweverSlowTheSubscriber() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let slow = try broker.client("slow")
    // Far more than the log retains for late subscribers, or as grace for subscribers in progress.
    try producer.create("t", settings(.lossless, buffer: 50, bytes: 200_000))
    try slow.subscribe("t", stream: 1, granted: 0)
    try producer.openPublication("t", stream: 1)
    var published: UInt64 = 0
    var asked: UInt64 = 0
    let payload = [UInt8](repeating: 7, count: 10_000)
    while asked < 600 {
      asked += 10
      try slow.demand(asked, stream: 1)
      try producer.receive(until: "a grant") {
        producer.publications[1]!.granted > published
          && producer.publications[1]!.bytesGranted > published * 10_004
      }
      while published < producer.publications[1]!.granted,
        published * 10_004 < producer.publications[1]!.bytesGranted
      {
        try producer.publish([payload], stream: 1)
        published += 1
      }
      try slow.receiveRecords(min(asked, published), stream: 1)
      #expect(!slow.events(1).contains { if case .lag = $0 { true } else { false } })
    }
    #expect(slow.subscriptions[1]!.delivered >= 600)
  }

  @Test func bytesLimitWhatIsGrantedToo() throws {
    let client = try BrokerProcess().client()
    try client.create("t", settings(.lossless, buffer: 1000, bytes: 100))
    try client.subscribe("t", stream: 1, granted: 0)
    try client.openPublication("t", stream: 2)
    #expect(client.publications[2]!.bytesGranted == 100)
    #expect(client.publications[2]!.granted == 1000)
    // A record larger than the remaining grant may still be sent.
    try client.publish([[UInt8](repeating: 1, count: 200)], stream: 2)
    try client.roundTrip()
    #expect(client.publications[2]!.bytesGranted == 100)
    try client.demand(1, stream: 1)
    try client.receiveRecords(1, stream: 1)
    try client.receive(until: "bytes to be granted") { client.publications[2]!.bytesGranted > 204 }
    #expect(client.publications[2]!.bytesGranted == 304)
  }

  // MARK: Without subscribers

  @Test func whatIsBufferedAloneIsForTheFirstWhoComes() throws {
    let client = try BrokerProcess().client()
    try client.create("t", settings(.lossless, buffer: 3, withoutSubscribers: .buffer))
    try client.openPublication("t", stream: 1)
    #expect(client.publications[1]!.granted == 3)
    try client.publish(["a", "b", "c"], stream: 1)
    try client.roundTrip()
    #expect(client.publications[1]!.granted == 3)
    try client.subscribe("t", stream: 2)
    try client.receiveRecords(3, stream: 2)
    #expect(client.subscriptions[2]!.texts == ["a", "b", "c"])
    try client.receive(until: "more to be granted") { client.publications[1]!.granted > 3 }
    // The next subscriber doesn't get them.
    try client.subscribe("t", stream: 3)
    try client.roundTrip()
    #expect(client.subscriptions[3]!.delivered == 0)
  }

  @Test func aloneProducersMayRunOn() throws {
    let client = try BrokerProcess().client()
    try client.create("t", settings(.lossless, buffer: 2, withoutSubscribers: .drop))
    try client.openPublication("t", stream: 1)
    for number in 0..<20 { try client.publish(["\(number)"], stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
  }

  // MARK: Fastest

  @Test func theQuickestSetsThePaceAndTheOthersLag() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let quick = try broker.client("quick")
    let slow = try broker.client("slow")
    try producer.create("t", settings(.fastest, buffer: 10, bytes: 8 << 20))
    try slow.subscribe("t", stream: 1, granted: 1)
    try quick.subscribe("t", stream: 1)
    try producer.openPublication("t", stream: 1)
    let payload = [UInt8](repeating: 1, count: 100_000)
    for _ in 0..<100 {
      try producer.publish([payload], stream: 1)
      try producer.receiveAcknowledgements(stream: 1)
      try quick.receiveRecords(producer.publications[1]!.acknowledged, stream: 1)
    }
    try slow.demand(.max, stream: 1)
    try slow.receive(until: "the slow one to lag") {
      slow.events(1).contains { if case .lag = $0 { true } else { false } }
    }
  }
}
