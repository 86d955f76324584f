import SluiceWire
import TestSupport
import Testing

/// Topics that keep the newest record of each key.
@Suite(.onItsOwnThread) struct CompactTests {
  typealias Event = SubscriptionLedger.Event

  private func start(keeping records: String = "everything") throws -> (BrokerProcess, RawClient) {
    let broker = try BrokerProcess("--topic-rule", "t compact=true replay-records=\(records)")
    return (broker, try broker.client())
  }

  private func records(of stream: UInt32, _ client: RawClient) throws -> [String] {
    try client.subscriptions[stream]!.payloads.map { body in
      try body.withUnsafeBytes {
        let attributes = try RecordAttributes($0)
        return
          "\(String(decoding: attributes.key!, as: UTF8.self))=\(String(decoding: attributes.payload, as: UTF8.self))"
      }
    }
  }

  @Test func aLateSubscriberGetsTheNewestOfEachKeyThenLive() throws {
    let (broker, client) = try start()
    try client.openPublication("t", stream: 1000)
    try client.publish([("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    let subscribed = try client.subscribe("t", stream: 1)
    #expect(subscribed.gaps)
    try client.receiveRecords(3, stream: 1)
    try client.publish([("a", "6"), ("a", "7")], stream: 1000)
    try client.receiveRecords(5, stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 2, live: 5), .records(2..<5), .live(5), .records(5..<7)])
    #expect(try records(of: 1, client) == ["a=3", "c=4", "b=5", "a=6", "a=7"])
    #expect(client.subscriptions[1]!.times == client.subscriptions[1]!.times.sorted())
    let summary = try client.show("t").summary
    #expect(summary.records == 3)
    #expect(summary.firstOffset == 3)
    #expect(summary.nextOffset == 7)
    #expect(summary.bytes == 3 * 9)
    try broker.requireRunning()
  }

  @Test func gapsCostNoDemandAndTheMarkerNeedsNone() throws {
    let (broker, client) = try start()
    try client.openPublication("t", stream: 1000)
    try client.publish([("a", "1"), ("b", "2"), ("c", "3"), ("b", "4"), ("d", "")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    try client.subscribe("t", stream: 1, granted: 2)
    try client.receiveRecords(2, stream: 1)
    try client.roundTrip()
    #expect(client.events(1) == [.subscribed(next: 0, live: 5), .records(0..<1), .records(2..<3)])
    try client.demand(3, stream: 1)
    try client.receiveRecords(3, stream: 1)
    try client.roundTrip()
    // Only a deletion follows the last record, and late subscribers don't get it.
    #expect(client.events(1).suffix(2) == [.records(2..<4), .live(5)])

    try client.publish([("a", ""), ("b", ""), ("c", "")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    try client.subscribe("t", stream: 2, granted: 0)
    try client.roundTrip()
    #expect(client.events(2) == [.subscribed(next: 8, live: 8), .live(8)])
    try client.complete(stream: 1000)
    try client.receiveEnd(stream: 2)
    #expect(client.events(2).last == .complete(.finished))
    try broker.requireRunning()
  }

  @Test func aRecordWithoutAKeyEndsItsPublication() throws {
    let (broker, client) = try start()
    try client.openPublication("t", stream: 1000)
    try client.publish([("a", "1")], stream: 1000)
    try client.publish(["without"], stream: 1000)
    try client.receive(until: "the end of the publication") { client.publications[1000]!.end != nil }
    #expect(client.publications[1000]!.end == .fault(.keyRequired))
    #expect(client.publications[1000]!.acknowledged == 1)
    #expect(try client.show("t").summary.nextOffset == 1)
    // The connection stays open, and the topic continues.
    try client.openPublication("t", stream: 1000)
    try client.publish([("a", "2")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    try broker.requireRunning()
  }

  @Test func whoComesBackIsToldWhatWasDeleted() throws {
    let (broker, client) = try start()
    try client.openPublication("t", stream: 1000)
    try client.publish([("a", "1"), ("b", "2")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    let subscribed = try client.subscribe("t", stream: 1)
    try client.receiveRecords(2, stream: 1)
    try client.cancel(stream: 1)
    try client.publish([("a", ""), ("c", "3"), ("c", "4")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    try client.subscribe("t", stream: 1, from: .offset(2), epoch: subscribed.epoch)
    try client.receiveRecords(2, stream: 1)
    try client.roundTrip()
    #expect(try records(of: 1, client) == ["a=", "c=4"])
    #expect(
      client.events(1) == [.subscribed(next: 2, live: 5), .records(2..<3), .records(4..<5), .live(5)])
    try broker.requireRunning()
  }

  @Test func whoFallsBehindGetsTheNewestOfWhatItHasMissed() throws {
    let (broker, client) = try start()
    try client.subscribe("t", stream: 1, granted: 1)
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1000)
    let filler = String(repeating: "x", count: 1000)
    try producer.publish([("first", "1")], stream: 1000)
    // More than the log retains.
    for round in 0..<80 {
      try producer.publish((0..<100).map { ("\($0)", "\(round) \(filler)") }, stream: 1000)
    }
    try producer.receiveAcknowledgements(stream: 1000)
    try client.receiveRecords(1, stream: 1)
    try client.demand(.max, stream: 1)
    try client.receive(until: "the last record") { client.subscriptions[1]!.nextOffset == 8001 }
    let events = client.events(1)
    #expect(events.prefix(3) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<1)])
    #expect(events.last == .records(7901..<8001))
    #expect(events.count == 4, "what was replaced is no lag: \(events)")
    try producer.publish([("first", "2")], stream: 1000)
    try client.receiveRecords(102, stream: 1)
    #expect(client.events(1).last == .records(7901..<8002))
    try broker.requireRunning()
  }

  @Test func theLimitsAreAboutTheNewestRecords() throws {
    let (broker, client) = try start(keeping: "2")
    try client.openPublication("t", stream: 1000)
    try client.publish((0..<50).flatMap { [("a", "\($0)"), ("b", "\($0)")] }, stream: 1000)
    try client.publish([("c", "1")], stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    let cases: [(Subscribe.Start, first: UInt64)] = [
      (.replay, 99), (.earliest, 99), (.new, 101), (.last(1), 100), (.last(2), 99), (.last(.max), 99),
      (.offset(100), 100), (.offset(101), 101), (.time(0), 99), (.time(.max), 101),
    ]
    for (index, (start, first)) in cases.enumerated() {
      let subscribed = try client.subscribe("t", stream: UInt32(index + 1), from: start)
      #expect(subscribed.nextOffset == first, "\(start)")
      #expect(subscribed.liveOffset == 101, "\(start)")
    }
    try client.subscribe("t", stream: 50, from: .offset(3))
    try client.roundTrip()
    #expect(client.events(50).prefix(2) == [.subscribed(next: 99, live: 101), .lag(missed: 96, next: 99)])
    #expect(try client.show("t").summary.records == 2)
    try broker.requireRunning()
  }

  @Test func theToolCreatesAndShowsThem() throws {
    let broker = try BrokerProcess()
    func run(_ arguments: String..., mentions: String...) throws {
      let process = try ChildProcess.sluice(arguments, server: broker.address)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
      let said = process.standardOutput.text
      for text in mentions { #expect(said.contains(text), "\(said)") }
    }
    try run("topic", "create", "t", "--compact")
    for (key, price) in [("tea", "1"), ("coffee", "2"), ("tea", "3"), ("milk", "4"), ("milk", "")] {
      try run("pub", "t", "--key", key, price)
    }
    try run("sub", "t", "--until-live", "--format", "{key}={payload}", mentions: "coffee=2\ntea=3\n")
    try run("topic", "show", "t", mentions: "2 kept, offsets 1 to 4", "compact")
    try run("topic", "show", "t", "--json", mentions: "\"compact\":true", "\"records\":2")
    let keyless = try broker.sluice("pub", "t", "without")
    #expect(try keyless.waitForExit() == .code(1))
    #expect(keyless.standardError.text.contains("has no key"))
    let refused = try broker.sluice("topic", "create", "u", "--compact=perhaps")
    #expect(try refused.waitForExit() == .code(2))
    try broker.requireRunning()
  }

  /// The switch from the newest records to the log, with producers at full speed: no record is duplicated or out of order, and the last value of each
  /// key is the newest.
  @Test(arguments: ["free", "lossless"])
  func theSeamHoldsWhileProducersRun(flow: String) throws {
    let broker = try BrokerProcess("--topic-rule", "t compact=true flow=\(flow)", "--replay-bytes", "100KiB")
    let keys = 500
    let rounds: UInt64 = 400
    let client = try broker.client("subscriber")
    try client.openPublication("t", stream: 1000)
    // Initial records.
    try client.publish((0..<keys).map { ("\($0)", "first") }, stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    let last = rounds * 50 + UInt64(keys)
    try meanwhile {
      let producer = try broker.client("producer")
      try producer.openPublication("t", stream: 1000)
      for round in 0..<rounds {
        try producer.publish((0..<50).map { ("\(($0 * 7 + Int(round)) % keys)", "\(round)") }, stream: 1000)
      }
      try producer.receiveAcknowledgements(stream: 1000)
    } _: {
      for stream in 1...8 as ClosedRange<UInt32> {
        try client.sendSubscribe("t", stream: stream, granted: 100)
        pause(0.005)
        try client.demand(.max, stream: stream)
      }
      try client.receive(until: "the last records") {
        (1...8).allSatisfy { client.subscriptions[$0]?.nextOffset == last }
      }
    }
    try client.subscribe("t", stream: 9)
    try client.receive(until: "replay") { client.subscriptions[9]!.isLive }
    let newest = try newestRecords(of: 9, client)
    #expect(newest.count == keys)
    for stream in 1...8 as ClosedRange<UInt32> {
      #expect(try newestRecords(of: stream, client) == newest)
    }
    try broker.requireRunning()
  }

  private func newestRecords(of stream: UInt32, _ client: RawClient) throws -> [Substring: Substring] {
    Dictionary(
      try records(of: stream, client).map { record in
        let parts = record.split(separator: "=", omittingEmptySubsequences: false)
        return (parts[0], parts[1])
      }, uniquingKeysWith: { $1 })
  }
}
