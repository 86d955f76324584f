import SluiceWire
import TestSupport
import Testing

/// One LIVE per subscription, exactly at the end of the replay. The client's ledger checks in every test that it comes once and at the right offset;
/// these tests check that it comes.
@Suite(.onItsOwnThread) struct LiveMarkerTests {
  @Test func itComesAtOnceWhenThereIsNothingToReplay() throws {
    let client = try BrokerProcess().client()
    try client.subscribe("t", stream: 1, granted: 0)
    try client.roundTrip()
    #expect(client.events(1) == [.subscribed(next: 0, live: 0), .live(0)])
  }

  @Test func itComesRightAfterTheLastReplayedRecordAndNeedsNoDemand() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["a", "b", "c"], to: "t")
    try client.subscribe("t", stream: 1, granted: 2)
    try client.receiveRecords(2, stream: 1)
    try client.roundTrip()
    #expect(client.events(1) == [.subscribed(next: 0, live: 3), .records(0..<2)])
    try client.demand(3, stream: 1)
    try client.receiveRecords(3, stream: 1)
    try client.roundTrip()
    #expect(client.events(1) == [.subscribed(next: 0, live: 3), .records(0..<3), .live(3)])
  }

  @Test func whatIsPublishedDuringReplayComesAfterIt() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["a", "b", "c"], to: "t")
    try client.subscribe("t", stream: 1, granted: 1)
    try client.publishAll(["d", "e"], to: "t")
    try client.demand(.max, stream: 1)
    try client.receiveRecords(5, stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 3), .records(0..<3), .live(3), .records(3..<5)])
  }

  @Test func itComesBeforeTheEndOfATopicThatHasEnded() throws {
    let client = try BrokerProcess().client()
    try client.publishAll(["a"], to: "t")
    try client.end("t")
    try client.end("empty")
    try client.subscribe("t", stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 1), .records(0..<1), .live(1), .complete(.finished)])
    try client.subscribe("empty", stream: 2, granted: 0)
    try client.receiveEnd(stream: 2)
    #expect(client.events(2) == [.subscribed(next: 0, live: 0), .live(0), .complete(.finished)])
  }
}
