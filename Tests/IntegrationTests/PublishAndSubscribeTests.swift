import SluiceWire
import TestSupport
import Testing

/// Publishing to a broker and subscribing.
@Suite(.onItsOwnThread) struct PublishAndSubscribeTests {
  @Test func aSubscriberGetsWhatWasPublishedBeforeDuringAndAfterItCame() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let subscriber = try broker.client("subscriber")
    try producer.openPublication("t", stream: 1)
    try producer.publish(["a", "b"], stream: 1)
    try producer.receiveAcknowledgements(stream: 1)
    #expect(producer.publications[1]!.lastOffset == 1)

    try subscriber.subscribe("t", stream: 1)
    try subscriber.receiveRecords(2, stream: 1)
    try producer.publish(["c"], stream: 1)
    try subscriber.receiveRecords(3, stream: 1)
    try producer.complete(stream: 1)
    try subscriber.receiveEnd(stream: 1)

    #expect(
      subscriber.events(1) == [
        .subscribed(next: 0, live: 2), .records(0..<2), .live(2), .records(2..<3), .complete(.finished),
      ])
    #expect(subscriber.subscriptions[1]!.texts == ["a", "b", "c"])
    #expect(try broker.terminate() == .code(0))
  }

  @Test func everySubscriberSeesTheRecordsOfSeveralProducersInTheSameOrder() throws {
    let broker = try BrokerProcess()
    let subscribers = try (0..<4).map { try broker.client("subscriber \($0)") }
    try subscribers[0].subscribe("t", stream: 1)
    try subscribers[1].subscribe("t", stream: 1)
    try concurrently(
      (0..<3).map { producer in
        {
          let client = try broker.client("producer \(producer)")
          try client.openPublication("t", stream: 1)
          for batch in 0..<40 {
            try client.publish((0..<25).map { "\(producer) \(batch * 25 + $0)" }, stream: 1)
          }
          try client.receiveAcknowledgements(stream: 1)
        }
      })
    try subscribers[2].subscribe("t", stream: 1)
    try subscribers[3].subscribe("t", stream: 1, from: .earliest, granted: 3000)
    for subscriber in subscribers { try subscriber.receiveRecords(3000, stream: 1) }

    let order = subscribers[0].subscriptions[1]!.texts
    for subscriber in subscribers { #expect(subscriber.subscriptions[1]!.texts == order) }
    for producer in 0..<3 {
      #expect(order.filter { $0.hasPrefix("\(producer) ") } == (0..<1000).map { "\(producer) \($0)" })
    }
  }

  @Test func manyStreamsShareAConnection() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    for index in UInt32(0)..<50 {
      try client.subscribe("topic.\(index)", stream: 1 + index)
      try client.openPublication("topic.\(index)", stream: 101 + index)
    }
    for index in UInt32(0)..<50 { try client.publish(["\(index)", ""], stream: 101 + index) }
    for index in UInt32(0)..<50 {
      try client.receiveRecords(2, stream: 1 + index)
      #expect(client.subscriptions[1 + index]!.texts == ["\(index)", ""])
    }
  }

  @Test func emptyRecordsAreRecords() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.publishAll(["", "", "x", ""], to: "t")
    try client.subscribe("t", stream: 1, granted: 3)
    try client.receiveRecords(3, stream: 1)
    try client.demand(4, stream: 1)
    try client.receiveRecords(4, stream: 1)
    #expect(client.subscriptions[1]!.texts == ["", "", "x", ""])
  }

  @Test func keysAndHeadersTravelUnchanged() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    var batch = BatchBuilder()
    try [UInt8]("key".utf8).withUnsafeBytes { key in
      try [UInt8]("payload".utf8).withUnsafeBytes { payload in
        try batch.append(
          key: key, headers: [(Array("name".utf8), Array("value".utf8)), ([], [])], payload: payload)
      }
    }
    try client.openPublication("t", stream: 2)
    try client.publish(batch, stream: 2)
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(1, stream: 1)
    let body = client.subscriptions[1]!.payloads[0]
    #expect(body == Array(batch.bytes[RecordLayout.wordSize...]))
    try body.withUnsafeBytes {
      let attributes = try RecordAttributes($0)
      #expect(attributes.key.map(Array.init) == Array("key".utf8))
      #expect(attributes.headerCount == 2)
      #expect(Array(attributes.payload) == Array("payload".utf8))
    }
  }

  @Test func acknowledgementsAreForThoseWhoWantThem() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("t", stream: 1, acknowledgement: .none)
    try client.publish(["a"], stream: 1)
    try client.roundTrip()
    #expect(client.publications[1]!.acknowledged == 0)
    #expect(try client.show("t").summary.nextOffset == 1)

    try client.send(PublishOpen(topic: "t", acknowledgement: .durable), stream: 2)
    try client.expectFault(.unsupported, stream: 2)
    try client.roundTrip()
  }

  @Test func recordsKeepTheTimeOfTheirArrival() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("t", stream: 1)
    for text in ["a", "b", "c"] {
      try client.publish([text, text], stream: 1)
      try client.receiveAcknowledgements(stream: 1)
      pause(0.01)
    }
    for (stream, start) in [(2, .replay), (3, .offset(3)), (4, .last(1))] as [(UInt32, Subscribe.Start)] {
      try client.subscribe("t", stream: stream, from: start)
    }
    for (stream, count) in [(2, 6), (3, 3), (4, 1)] as [(UInt32, UInt64)] {
      try client.receiveRecords(count, stream: stream)
    }
    let times = client.subscriptions[2]!.times
    #expect(times[0] == times[1])
    #expect(times[1] < times[2])
    #expect(times[3] < times[4])
    // A subscriber that starts in the middle of a batch, or of a segment, gets the same.
    #expect(client.subscriptions[3]!.times == Array(times[3...]))
    #expect(client.subscriptions[4]!.times == Array(times[5...]))
  }
}
