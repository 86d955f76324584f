import SluiceWire
import TestSupport
import Testing

/// Terminal events of topics, as seen by their subscribers and producers.
@Suite(.onItsOwnThread) struct EndingTests {
  private static let failure = Complete.Ending.failure(code: .producerFailure, message: "the source broke: ä")

  @Test(arguments: [Complete.Ending.finished, EndingTests.failure])
  func theEndComesAfterAllRecordsToEarlyAndLateSubscribers(ending: Complete.Ending) throws {
    let client = try BrokerProcess().client()
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 1000)
    try client.publish((0..<1000).map { "\($0)" }, stream: 1000)
    try client.complete(ending, stream: 1000)
    #expect(client.publications[1000]!.acknowledged == 1000)
    try client.subscribe("t", stream: 2)
    try client.subscribe("t", stream: 3, from: .new)
    try client.subscribe("t", stream: 4, from: .last(2), granted: 2)
    for stream in UInt32(1)...4 { try client.receiveEnd(stream: stream) }
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<1000), .complete(ending)])
    #expect(
      client.events(2) == [
        .subscribed(next: 0, live: 1000), .records(0..<1000), .live(1000), .complete(ending),
      ])
    #expect(client.events(3) == [.subscribed(next: 1000, live: 1000), .live(1000), .complete(ending)])
    #expect(
      client.events(4) == [
        .subscribed(next: 998, live: 1000), .records(998..<1000), .live(1000), .complete(ending),
      ])
    #expect(try client.show("t").summary.ending == ending)
  }

  @Test func theEndNeedsNoDemandButWaitsForWhatIsOwed() throws {
    let client = try BrokerProcess().client()
    try client.subscribe("t", stream: 1, granted: 0)
    try client.subscribe("t", stream: 2, granted: 2)
    try client.publishAll(["a", "b", "c"], to: "t")
    try client.subscribe("t", stream: 3, from: .new, granted: 0)
    try client.end("t")
    try client.receiveEnd(stream: 3)
    try client.roundTrip()
    #expect(client.events(3) == [.subscribed(next: 3, live: 3), .live(3), .complete(.finished)])
    #expect(client.events(2) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<2)])

    try client.demand(3, stream: 2)
    try client.receiveEnd(stream: 2)
    #expect(
      client.events(2) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<3), .complete(.finished)])
    for total in UInt64(1)...3 {
      try client.roundTrip()
      #expect(!client.subscriptions[1]!.isOver)
      try client.demand(total, stream: 1)
    }
    try client.receiveEnd(stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<3), .complete(.finished)])
  }

  @Test func anEndedTopicTakesNothingMore() throws {
    let client = try BrokerProcess().client()
    try client.openPublication("t", stream: 1)
    try client.publish(["a"], stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    try client.end("t", Self.failure)
    // The other producer gets the event, and its records in transit are dropped.
    try client.receive(until: "the end of the publication") { client.publications[1]!.end != nil }
    #expect(client.publications[1]!.end == .complete(Self.failure))
    try client.send(raw: RawClient.publishFrame(BatchBuilder(), from: 1, stream: 1))
    try client.roundTrip()

    try client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 2)
    let fault = try client.expectFault(.topicEnded, stream: 2)
    #expect(fault.message.contains("the source broke: ä"))
    #expect(try client.show("t").summary.nextOffset == 1)
    #expect(try client.show("t").summary.publications == 0)
  }

  @Test func producersThatEndATopicAtTheSameTimeAllHearTheSameEnd() throws {
    let broker = try BrokerProcess()
    for round in 0..<20 {
      let topic = "t.\(round)"
      let clients = try (0..<3).map { try broker.client("producer \($0)") }
      for client in clients { try client.openPublication(topic, stream: 1) }
      for (index, client) in clients.enumerated() {
        try client.send(Complete(.failure(code: .producerFailure, message: "\(index)")), stream: 1)
      }
      var confirmed: [Complete.Ending] = []
      var told: [Complete.Ending] = []
      for (index, client) in clients.enumerated() {
        try client.receive(until: "the answer to COMPLETE") { client.publications[1]!.end != nil }
        switch client.publications[1]!.end! {
        case .cancelled: confirmed.append(.failure(code: .producerFailure, message: "\(index)"))
        case .complete(let ending): told.append(ending)
        case .fault(.topicEnded): break
        case let other: Issue.record("\(other)")
        }
      }
      let ending = try clients[0].show(topic).summary.ending!
      #expect(confirmed == [ending])
      #expect(told.allSatisfy { $0 == ending })
    }
  }

  @Test func aDeletedTopicEndsForAllAndStartsAnew() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["old"], to: "t")
    let epoch = try client.subscribe("t", stream: 1).epoch
    try client.subscribe("t", stream: 2, granted: 0)
    try client.openPublication("t", stream: 3)
    try client.delete("t")
    try client.receiveEnd(stream: 1)
    try client.receiveEnd(stream: 2)
    try client.receive(until: "the end of the publication") { client.publications[3]!.end != nil }
    #expect(client.events(1).last == .fault(.topicDeleted))
    #expect(client.events(2).last == .fault(.topicDeleted))
    #expect(client.publications[3]!.end == .fault(.topicDeleted))

    try client.send(TopicShow(topic: "t"), stream: 4)
    try client.expectFault(.unknownTopic, stream: 4)
    try client.send(TopicDelete(topic: "t"), stream: 4)
    try client.expectFault(.unknownTopic, stream: 4)

    let anew = try client.subscribe("t", stream: 1)
    #expect(anew.epoch != epoch)
    #expect(anew.nextOffset == 0)
    try client.publishAll(["new"], to: "t")
    try client.receiveRecords(1, stream: 1)
    #expect(client.subscriptions[1]!.texts == ["new"])
  }

  @Test func anEndedTopicCanBeDeletedAndUsedAgain() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["a"], to: "t")
    try client.end("t")
    try client.delete("t")
    try client.publishAll(["b"], to: "t")
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(1, stream: 1)
    #expect(client.subscriptions[1]!.texts == ["b"])
  }
}
