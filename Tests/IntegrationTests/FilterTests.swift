import SluiceWire
import TestSupport
import Testing

/// Filters at the broker: filtered-out records aren't sent, and use no demand.
@Suite(.onItsOwnThread) struct FilterTests {
  typealias Event = SubscriptionLedger.Event

  private static let even = [RecordFilter.Condition(.key, .equals(Array("even".utf8)))]

  /// Publishes "0", "1", and so on, in batches of three, with a key and a header. In some batches, each record has its own timestamp.
  private func publish(_ numbers: Range<Int>, with client: RawClient, payload: Int = 0) throws {
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 3) {
      var batch = BatchBuilder()
      for number in start..<min(start + 3, numbers.upperBound) {
        let key: [UInt8] = Array((number % 2 == 0 ? "even" : "odd").utf8)
        let text: [UInt8] = Array("\(number)".utf8) + [UInt8](repeating: 0x2E, count: payload)
        try key.withUnsafeBytes { key in
          try text.withUnsafeBytes {
            try batch.append(
              key: key, headers: [(Array("third".utf8), Array("\(number % 3)".utf8))], payload: $0)
          }
        }
      }
      try client.publish(batch, stream: 1000)
      if start % 4 == 0 {
        try client.receiveAcknowledgements(stream: 1000)
        pause(0.002)
      }
    }
    try client.receiveAcknowledgements(stream: 1000)
  }

  private func isolated(_ offsets: StrideTo<Int>) -> [Event] {
    offsets.map { .records(UInt64($0)..<UInt64($0 + 1)) }
  }

  @Test func whatIsWantedComesWithItsOffsetsAndTimesAndNothingElse() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("t", stream: 1000)
    try publish(0..<60, with: client)
    try client.subscribe("t", stream: 1)
    let filtered = try client.subscribe("t", stream: 2, where: Self.even)
    #expect(filtered.gaps && filtered.nextOffset == 0 && filtered.liveOffset == 60)
    try publish(60..<90, with: client)
    try client.receiveRecords(90, stream: 1)
    try client.receiveRecords(45, stream: 2)
    try client.roundTrip()
    #expect(
      client.events(2) == [.subscribed(next: 0, live: 60)] + isolated(stride(from: 0, to: 60, by: 2))
        + [.live(60)] + isolated(stride(from: 60, to: 90, by: 2)))
    let (all, some) = (client.subscriptions[1]!, client.subscriptions[2]!)
    #expect(some.times == (0..<45).map { all.times[$0 * 2] })
    #expect(some.payloads == (0..<45).map { all.payloads[$0 * 2] })
    try broker.requireRunning()
  }

  @Test func whatIsNotWantedCostsNoDemandAndHoldsUpNothing() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("t", stream: 1000)
    try publish(0..<9, with: client)
    // Matches only record 8.
    let last = Self.even + [.init(.header("third"), .hasPrefix(Array("2".utf8)))]
    try client.subscribe("t", stream: 1, from: .offset(3), granted: 0, where: last)
    try client.roundTrip()
    // Without demand the subscription stops at the first matching record.
    #expect(client.events(1) == [.subscribed(next: 3, live: 9)])
    #expect(try client.show("t").subscriptions.map(\.nextOffset) == [8])
    try client.demand(1, stream: 1)
    try client.receiveRecords(1, stream: 1)
    try client.roundTrip()
    #expect(client.events(1) == [.subscribed(next: 3, live: 9), .records(8..<9), .live(9)])
    // With its demand used up, it continues to the end, which needs none.
    try publish(9..<14, with: client)
    try client.end("t", stream: 1002)
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .complete(.finished))
    // A subscription without matches receives only the end.
    try client.subscribe("t", stream: 2, granted: 0, where: [.init(.header("fourth"), .exists)])
    try client.receiveEnd(stream: 2)
    #expect(client.events(2) == [.subscribed(next: 0, live: 14), .live(14), .complete(.finished)])
    try broker.requireRunning()
  }

  @Test func producersThatWaitForSubscribersDoNotWaitForWhatIsNotWanted() throws {
    let broker = try BrokerProcess("--flow", "lossless", "--buffer-records", "4")
    let client = try broker.client()
    try client.subscribe("t", stream: 1, granted: 2, where: [.init(.header("third"), .equals([0x31]))])
    try client.openPublication("t", stream: 1000)
    // 1 and 4 are requested; 7 has to wait, and so do the records beyond the buffer.
    try publish(0..<9, with: client)
    try client.receiveRecords(2, stream: 1)
    try client.roundTrip()
    #expect(try client.show("t").subscriptions.map(\.nextOffset) == [7])
    try client.demand(3, stream: 1)
    try publish(9..<12, with: client)
    try client.receiveRecords(3, stream: 1)
    #expect(client.events(1).suffix(1) == [.records(7..<8)])
    try broker.requireRunning()
  }

  @Test func longRunsAndLongRecordsComeWhole() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("t", stream: 1000)
    try publish(0..<30, with: client, payload: 100_000)
    try publish(30..<60, with: client, payload: 300)
    let third = [RecordFilter.Condition(.header("third"), .exists)]
    try client.subscribe("t", stream: 1)
    try client.subscribe("t", stream: 2, where: third)
    try client.subscribe("t", stream: 3, where: Self.even)
    try client.receiveRecords(60, stream: 1)
    try client.receiveRecords(60, stream: 2)
    try client.receiveRecords(30, stream: 3)
    #expect(client.subscriptions[2]!.payloads == client.subscriptions[1]!.payloads)
    #expect(
      client.subscriptions[3]!.payloads == (0..<30).map { client.subscriptions[1]!.payloads[$0 * 2] })
    // Consecutive records arrive together.
    #expect(client.events(2) == client.events(1))
    try broker.requireRunning()
  }

  @Test func oneThatFindsNothingInALongReplayDoesNotDelayTheOthers() throws {
    let broker = try BrokerProcess("--loops", "1")
    let client = try broker.client()
    try client.openPublication("long", stream: 1000)
    var batch = BatchBuilder()
    let key: [UInt8] = [1]
    try key.withUnsafeBytes { key in
      try [UInt8](repeating: 7, count: 100).withUnsafeBytes { payload in
        for _ in 0..<8_000 { try batch.append(key: key, headers: [], payload: payload) }
      }
    }
    for _ in 0..<20 { try client.publish(batch, stream: 1000) }
    try client.receiveAcknowledgements(stream: 1000)
    for stream in 1...20 as ClosedRange<UInt32> {
      try client.subscribe("long", stream: stream, where: [.init(.key, .equals([2]))])
    }
    try client.publishAll(["x"], to: "short", stream: 1002)
    try client.subscribe("short", stream: 30)
    try client.receiveRecords(1, stream: 30)
    for stream in 1...20 as ClosedRange<UInt32> {
      try client.receive(until: "LIVE") { client.subscriptions[stream]!.isLive }
      #expect(client.events(stream) == [.subscribed(next: 0, live: 160_000), .live(160_000)])
    }
    try broker.requireRunning()
  }

  @Test func ofTheNewestRecordsOfEachKeyOnlyThoseComeThatAreWanted() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    var settings = TopicSettings()
    settings.compact = true
    try client.create("t", settings)
    try client.openPublication("t", stream: 1000)
    var batch = BatchBuilder()
    for key in ["eu.1", "us.1", "eu.1", "eu.2"] {
      try Array(key.utf8).withUnsafeBytes { key in
        try [UInt8](repeating: 7, count: 5).withUnsafeBytes {
          try batch.append(key: key, headers: [], payload: $0)
        }
      }
    }
    try client.publish(batch, stream: 1000)
    try client.receiveAcknowledgements(stream: 1000)
    func prefix(_ text: String) -> [RecordFilter.Condition] { [.init(.key, .hasPrefix(Array(text.utf8)))] }
    try client.subscribe("t", stream: 1, where: prefix("eu."))
    try client.subscribe("t", stream: 2, granted: 0, where: prefix("us."))
    try client.subscribe("t", stream: 3, granted: 0, where: prefix("asia."))
    try client.receiveRecords(2, stream: 1)
    try client.receive(until: "LIVE") { client.subscriptions[3]!.isLive && client.subscriptions[1]!.isLive }
    #expect(client.events(1).dropFirst() == [.records(2..<4), .live(4)])
    #expect(client.events(2).count == 1)
    #expect(client.events(3).dropFirst() == [.live(4)])
    try client.demand(1, stream: 2)
    try client.receive(until: "LIVE") { client.subscriptions[2]!.isLive }
    #expect(client.events(2).dropFirst() == [.records(1..<2), .live(4)])
    try client.publish(batch, stream: 1000)
    try client.receiveRecords(5, stream: 1)
    #expect(client.events(1).suffix(2) == [.records(4..<5), .records(6..<8)])
    try broker.requireRunning()
  }

  @Test func aFilterThatIsTooMuchIsRefusedAndTheConnectionStays() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    let one = RecordFilter.Condition(.key, .exists)
    try client.sendSubscribe("t", stream: 1, where: Array(repeating: one, count: 17))
    try client.expectFault(.limitReached, stream: 1)
    try client.subscribe("t", stream: 1, where: Array(repeating: one, count: 16))
    try broker.requireRunning()
  }
}
