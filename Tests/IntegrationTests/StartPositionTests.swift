import SluiceWire
import TestSupport
import Testing

/// Start positions of subscriptions, in range and out of range: of ten published records the last five are retained.
@Suite(.onItsOwnThread) struct StartPositionTests {
  typealias Event = SubscriptionLedger.Event

  private func publishTen() throws -> (BrokerProcess, RawClient) {
    let broker = try BrokerProcess("--replay-records", "5")
    let client = try broker.client()
    try client.openPublication("t", stream: 1000)
    for index in 0..<10 {
      try client.publish(["\(index)"], stream: 1000)
      try client.receiveAcknowledgements(stream: 1000)
      // Each record has its own timestamp.
      pause(0.003)
    }
    return (broker, client)
  }

  @Test func eachPositionHasItsPlace() throws {
    let (broker, client) = try publishTen()
    let cases: [(Subscribe.Start, first: UInt64)] = [
      (.replay, 5), (.earliest, 5), (.new, 10),
      (.last(3), 7), (.last(5), 5), (.last(6), 5), (.last(.max), 5), (.last(0), 10),
      (.offset(7), 7), (.offset(5), 5), (.offset(10), 10),
      (.time(0), 5), (.time(.min), 5), (.time(.max), 10),
    ]
    for (index, (start, first)) in cases.enumerated() {
      let stream = UInt32(index + 1)
      let subscribed = try client.subscribe("t", stream: stream, from: start)
      #expect(subscribed.nextOffset == first, "\(start)")
      #expect(subscribed.liveOffset == 10, "\(start)")
      try client.receiveRecords(10 - first, stream: stream)
      try client.roundTrip()
      let records: [Event] = first < 10 ? [.records(first..<10)] : []
      #expect(
        client.events(stream) == [.subscribed(next: first, live: 10)] + records + [.live(10)], "\(start)")
    }
    try broker.requireRunning()
  }

  @Test func aTimeIsThatOfTheFirstRecordFromThenOn() throws {
    let (broker, client) = try publishTen()
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(5, stream: 1)
    for (index, time) in client.subscriptions[1]!.times.enumerated() {
      let at = try client.subscribe("t", stream: 2, from: .time(time))
      #expect(at.nextOffset == 5 + UInt64(index))
      try client.cancel(stream: 2)
      let after = try client.subscribe("t", stream: 2, from: .time(time + 1))
      #expect(after.nextOffset == 6 + UInt64(index))
      try client.cancel(stream: 2)
    }
    try broker.requireRunning()
  }

  @Test func anOffsetThatIsGoneIsToldAsLag() throws {
    let (broker, client) = try publishTen()
    try client.subscribe("t", stream: 1, from: .offset(2))
    try client.receiveRecords(5, stream: 1)
    try client.roundTrip()
    #expect(
      client.events(1) == [
        .subscribed(next: 5, live: 10), .lag(missed: 3, next: 5), .records(5..<10), .live(10),
      ])

    try client.sendSubscribe("t", stream: 2, from: .offset(2), lag: .fail)
    try client.receiveEnd(stream: 2)
    #expect(client.events(2) == [.fault(.lagged)])
    try broker.requireRunning()
  }

  @Test func anOffsetBeyondTheEndIsWaitedFor() throws {
    let (broker, client) = try publishTen()
    try client.subscribe("t", stream: 1, from: .offset(12))
    try client.publish(["10"], stream: 1000)
    try client.publish(["11", "12", "13"], stream: 1000)
    try client.receiveRecords(2, stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 12, live: 12), .live(12), .records(12..<14)])
    #expect(client.subscriptions[1]!.texts == ["12", "13"])

    // Subscribers that wait for an offset that never existed get the end, too.
    try client.subscribe("t", stream: 2, from: .offset(.max))
    try client.complete(stream: 1000)
    try client.receiveEnd(stream: 2)
    #expect(
      client.events(2) == [.subscribed(next: .max, live: .max), .live(.max), .complete(.finished)])
    try broker.requireRunning()
  }

  @Test func aTopicThatKeepsNothingReplaysNothing() throws {
    let broker = try BrokerProcess("--replay-records", "0")
    let client = try broker.client()
    try client.publishAll(["a", "b"], to: "t")
    for start in [.replay, .earliest, .last(1), .time(0)] as [Subscribe.Start] {
      try client.subscribe("t", stream: 1, from: start)
      try client.roundTrip()
      #expect(client.events(1) == [.subscribed(next: 2, live: 2), .live(2)], "\(start)")
      try client.cancel(stream: 1)
    }
    try client.subscribe("t", stream: 1, from: .offset(0))
    try client.publishAll(["c"], to: "t")
    try client.receiveRecords(1, stream: 1)
    #expect(
      client.events(1) == [
        .subscribed(next: 2, live: 2), .lag(missed: 2, next: 2), .live(2), .records(2..<3),
      ]
    )
  }

  @Test func whoResumesGetsWhatIsStillInMemory() throws {
    let (broker, client) = try publishTen()
    let epoch = try client.subscribe("t", stream: 1).epoch
    // The record isn't retained for late subscribers, but an attached one hadn't lost it yet.
    let resumed = try client.subscribe("t", stream: 2, from: .offset(3), epoch: epoch)
    #expect(resumed.nextOffset == 3)
    try client.receiveRecords(7, stream: 2)
    #expect(client.subscriptions[2]!.texts == (3..<10).map { "\($0)" })
    try broker.requireRunning()
  }

  @Test func anotherEpochIsATypedError() throws {
    let (broker, client) = try publishTen()
    let epoch = try client.subscribe("t", stream: 1).epoch
    try client.sendSubscribe("t", stream: 2, from: .offset(7), epoch: epoch &+ 1)
    try client.receiveEnd(stream: 2)
    #expect(client.events(2) == [.fault(.epochChanged)])

    try client.cancel(stream: 1000)
    try client.delete("t")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.topicDeleted))
    try client.sendSubscribe("t", stream: 3, from: .offset(7), epoch: epoch)
    try client.receiveEnd(stream: 3)
    #expect(client.events(3) == [.fault(.epochChanged)])
    try broker.requireRunning()
  }

  @Test func recordsThatAreTooOldAreNotReplayed() throws {
    // The simulation tests that younger records are replayed; here a record may have any age when it is requested.
    let broker = try BrokerProcess("--replay-age", "300ms")
    let client = try broker.client()
    try client.publishAll(["old", "older"], to: "t")
    try eventually("nothing is replayed") {
      let start = try client.subscribe("t", stream: 1).nextOffset
      try client.cancel(stream: 1)
      return start == 2
    }
  }
}
