import SluiceWire
import TestSupport
import Testing

/// Subscribers whose records the topic drops before delivery.
@Suite(.onItsOwnThread) struct LagTests {
  /// Publishes so many records that the first ones are no longer in memory.
  private func publishMuch(_ broker: BrokerProcess) throws {
    try broker.publish(batches: 64, ofRecords: 128, bytes: 1024)
  }

  @Test func whoSkipsIsToldHowMuchAndGoesOn() throws {
    let broker = try BrokerProcess("--replay-bytes", "64KiB")
    let client = try broker.client("subscriber")
    try client.subscribe("t", stream: 1, granted: 3)
    try publishMuch(broker)
    try client.receiveRecords(3, stream: 1)

    try client.demand(.max, stream: 1)
    try client.receive(until: "the last record") { client.subscriptions[1]!.nextOffset == 64 * 128 }
    let events = client.events(1)
    guard events.count == 5, case .lag(let missed, let next) = events[3] else {
      Issue.record("\(events)")
      return
    }
    #expect(events.prefix(3) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<3)])
    #expect(next == 3 + missed)
    #expect(events[4] == .records(next..<64 * 128))
    // Dropped records use no demand.
    #expect(client.subscriptions[1]!.delivered == 3 + 64 * 128 - next)
  }

  @Test func whoAskedToFailIsEndedAlone() throws {
    let broker = try BrokerProcess("--replay-bytes", "64KiB")
    let client = try broker.client("subscriber")
    try client.subscribe("t", stream: 1, lag: .fail, granted: 3)
    try client.subscribe("t", stream: 2)
    try meanwhile {
      try publishMuch(broker)
    } _: {
      try client.receive(until: "the last record") { client.subscriptions[2]!.nextOffset == 64 * 128 }
    }
    try client.demand(.max, stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<3), .fault(.lagged)])
    try client.roundTrip()
    #expect(!client.subscriptions[2]!.isOver)
  }

  @Test func aLagInReplayLeadsBeyondTheMarker() throws {
    let broker = try BrokerProcess("--replay-bytes", "64KiB")
    let client = try broker.client("subscriber")
    try client.publishAll(["a", "b"], to: "t")
    try client.subscribe("t", stream: 1, granted: 1)
    try publishMuch(broker)
    try client.demand(.max, stream: 1)
    try client.receive(until: "the last record") { client.subscriptions[1]!.nextOffset == 2 + 64 * 128 }
    let events = client.events(1)
    guard events.count == 5, case .lag(_, let next) = events[2] else {
      Issue.record("\(events)")
      return
    }
    #expect(events[3] == .live(next))
    #expect(events[4] == .records(next..<2 + 64 * 128))
  }

  @Test func whoFallsBehindDoesNotDelayTheOthers() throws {
    let broker = try BrokerProcess("--replay-bytes", "64KiB")
    let client = try broker.client("subscriber")
    // On the same connection: one subscription without demand, one with unlimited demand.
    try client.subscribe("t", stream: 1, granted: 0)
    try client.subscribe("t", stream: 2)
    try meanwhile {
      try publishMuch(broker)
    } _: {
      try client.receive(until: "the last record") { client.subscriptions[2]!.nextOffset == 64 * 128 }
    }
    #expect(client.subscriptions[1]!.delivered == 0)
  }
}
