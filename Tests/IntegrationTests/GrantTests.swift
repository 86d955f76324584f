import SluiceWire
import TestSupport
import Testing

/// The broker never sends a record beyond the grant. The client's ledgers check that with every frame; these tests create the conditions under which
/// it could happen.
@Suite(.onItsOwnThread) struct GrantTests {
  @Test func eachRecordCanBeAskedForByItself() throws {
    let client = try BrokerProcess().client()
    try client.publishAll((0..<200).map { "\($0)" }, to: "t")
    try client.subscribe("t", stream: 1, granted: 0)
    try client.openPublication("t", stream: 2)
    for total in UInt64(1)...400 {
      if total > 200 { try client.publish(["\(total - 1)"], stream: 2) }
      try client.demand(total, stream: 1)
      try client.receiveRecords(total, stream: 1)
      #expect(client.subscriptions[1]!.delivered == total)
    }
    #expect(client.subscriptions[1]!.texts == (0..<400).map { "\($0)" })
  }

  @Test func repeatedAndReorderedGrantsChangeNothing() throws {
    let client = try BrokerProcess().client()
    try client.publishAll((0..<100).map { "\($0)" }, to: "t")
    try client.subscribe("t", stream: 1, granted: 10)
    try client.receiveRecords(10, stream: 1)
    for total in [10, 3, 1, 10, 9] as [UInt64] { try client.demand(total, stream: 1) }
    try client.roundTrip()
    #expect(client.subscriptions[1]!.delivered == 10)

    // Grants out of order, as if a network had reordered them: only the highest counts.
    for total in [30, 20, 40, 25, 40, 11] as [UInt64] { try client.demand(total, stream: 1) }
    try client.receiveRecords(40, stream: 1)
    try client.roundTrip()
    #expect(client.subscriptions[1]!.delivered == 40)
    #expect(try client.show("t").subscriptions[0].granted == 40)
    #expect(try client.show("t").subscriptions[0].sent == 40)
  }

  @Test func unlimitedStaysUnlimited() throws {
    let client = try BrokerProcess().client()
    try client.subscribe("t", stream: 1, granted: 1)
    try client.demand(.max, stream: 1)
    try client.demand(2, stream: 1)
    try client.publishAll((0..<100).map { "\($0)" }, to: "t")
    try client.receiveRecords(100, stream: 1)
    #expect(try client.show("t").subscriptions[0].granted == .max)
  }

  @Test func aGrantOfNothingIsTheStreamsErrorAlone() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["a", "b"], to: "t")
    try client.subscribe("t", stream: 1, granted: 1)
    try client.subscribe("t", stream: 2, granted: 1)
    try client.receiveRecords(1, stream: 1)
    try client.demand(0, stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.invalidDemand))
    #expect(client.subscriptions[1]!.delivered == 1)
    // This frame crosses the error.
    try client.send(Demand(grantedThrough: 5), stream: 1)

    try client.demand(2, stream: 2)
    try client.receiveRecords(2, stream: 2)
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(2, stream: 1)
    #expect(try client.show("t").summary.subscriptions == 2)
  }

  @Test func aProducerThatGoesBeyondItsGrantIsStoppedAlone() throws {
    let client = try BrokerProcess("--producer-window", "10").client()
    try client.openPublication("t", stream: 1)
    try client.openPublication("t", stream: 2)
    #expect(client.publications[1]!.granted == 10)
    var batch = BatchBuilder()
    for _ in 0..<11 { batch.append(UnsafeRawBufferPointer(start: nil, count: 0)) }
    try client.send(raw: RawClient.publishFrame(batch, from: 0, stream: 1))
    try client.expectFault(.demandExceeded, stream: 1)

    for round in 0..<20 { try client.publish((0..<7).map { "\(round) \($0)" }, stream: 2) }
    try client.receiveAcknowledgements(stream: 2)
    #expect(try client.show("t").summary.nextOffset == 140)
  }

  @Test func nothingComesBeyondRandomGrants() throws {
    var random = SeededRandom.printed()
    let broker = try BrokerProcess("--loops", "2")
    let topics = (0..<4).map { "t.\($0)" }
    let client = try broker.client("subscriber")
    // Half of the topics have records to replay; idle connections separate the subscriber's loop from the producers'.
    for topic in topics.prefix(2) { try client.publishAll((0..<500).map { "\($0)" }, to: topic) }
    let between = try (0..<16).map { try broker.client("idle \($0)") }

    let stop = Flag()
    let producers = topics.map { topic in
      let seed = random.next()
      return { @Sendable in try produce(broker, topic, until: stop, SeededRandom(seed: seed)) }
    }
    try meanwhile {
      try concurrently(producers)
    } _: {
      defer { stop.raise() }
      for stream in UInt32(1)...8 { try subscribe(client, topics, stream, &random) }
      for _ in 0..<3000 {
        let stream = UInt32.random(in: 1...8, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0:
          try client.cancel(stream: stream)
          try subscribe(client, topics, stream, &random)
        case 1..<20:
          // Late or repeated grants have no effect.
          let granted = client.subscriptions[stream]!.granted
          if granted > 0 { try client.demand(.random(in: 1...granted, using: &random), stream: stream) }
        case 20..<60:
          let most: UInt64 = [1, 2, 50, 2000].randomElement(using: &random)!
          let more = UInt64.random(in: 1...most, using: &random)
          try client.demand(client.subscriptions[stream]!.granted + more, stream: stream)
        default:
          try client.pump()
          try client.settle()
        }
      }
    }

    // After publishing has stopped, each subscription has exactly the granted records, or all of the topic's.
    for stream in UInt32(1)...8 {
      let head = try client.show(topics[Int(stream) % 4]).summary.nextOffset
      let ledger = client.subscriptions[stream]!
      let start = head - ledger.nextOffset! + ledger.delivered
      try client.receiveRecords(min(ledger.granted, start), stream: stream)
      try client.demand(.max, stream: stream)
      try client.receive(until: "the head of stream \(stream), and the marker") {
        client.subscriptions[stream]!.nextOffset == head && client.subscriptions[stream]!.isLive
      }
      #expect(!client.subscriptions[stream]!.isOver)
    }
    withExtendedLifetime(between) {}
    #expect(try broker.terminate() == .code(0))
  }

  private func subscribe(
    _ client: RawClient, _ topics: [String], _ stream: UInt32, _ random: inout SeededRandom
  ) throws {
    let starts: [Subscribe.Start] = [.replay, .earliest, .new, .last(100), .offset(250)]
    let granted = [0, 1, 300].randomElement(using: &random)!
    try client.subscribe(
      topics[Int(stream) % 4], stream: stream, from: starts.randomElement(using: &random)!,
      granted: UInt64(granted))
    client.subscriptions[stream]!.keepsPayloads = false
    // Each payload is the record's offset.
    client.subscriptions[stream]!.onRecord = { offset, body in
      let text = String(decoding: body, as: UTF8.self)
      try require(text == "\(offset)", "the record at \(offset) is \(text)")
    }
  }
}

/// Publishes offsets as fast as the broker accepts them. The topic must have no other producer at the time.
private func produce(
  _ broker: BrokerProcess, _ topic: String, until stop: Flag, _ random: SeededRandom
) throws {
  var random = random
  let client = try broker.client("producer of \(topic)")
  try client.openPublication(topic, stream: 1)
  var next = try client.show(topic, stream: 2).summary.nextOffset
  while !stop.isRaised, next < 500_000 {
    let count = UInt64.random(in: 1...200, using: &random)
    try client.publish((next..<next + count).map { "\($0)" }, stream: 1)
    next += count
  }
  try client.receiveAcknowledgements(stream: 1)
}
