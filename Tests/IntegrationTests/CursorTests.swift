import SluiceWire
import TestSupport
import Testing

/// Durable cursors at the broker, frame by frame.
@Suite(.onItsOwnThread) struct CursorTests {
  typealias Event = SubscriptionLedger.Event

  private func publishTen(_ broker: BrokerProcess? = nil) throws -> (BrokerProcess, RawClient) {
    let broker = try broker ?? BrokerProcess()
    let client = try broker.client()
    try client.publishAll((0..<10).map { "\($0)" }, to: "t")
    return (broker, client)
  }

  private func place(_ name: String, _ client: RawClient) throws -> UInt64? {
    try client.listCursors(of: "t").cursors.first { $0.name == name }?.nextOffset
  }

  @Test func aPlaceSurvivesItsClient() throws {
    let (broker, client) = try publishTen()
    let first = try client.subscribe("t", stream: 1, from: .offset(2), cursor: "billing")
    #expect(first.nextOffset == 2)
    try client.receiveRecords(8, stream: 1)
    #expect(try place("billing", client) == 2)
    try client.send(Commit(nextOffset: 6), stream: 1)
    // A commit of a lower offset changes nothing.
    try client.send(Commit(nextOffset: 4), stream: 1)
    try client.roundTrip()
    #expect(try place("billing", client) == 6)
    client.close()

    let second = try broker.client()
    // The existing cursor overrides the requested start.
    let again = try second.subscribe("t", stream: 1, from: .new, cursor: "billing")
    #expect(again.nextOffset == 6 && again.epoch == first.epoch)
    try second.receiveRecords(4, stream: 1)
    try second.send(Commit(nextOffset: 10), stream: 1)
    try second.cancel(stream: 1)
    #expect(try second.subscribe("t", stream: 2, cursor: "billing").nextOffset == 10)
    // Another cursor has its own position.
    #expect(try second.subscribe("t", stream: 3, from: .last(1), cursor: "audit").nextOffset == 9)
    try broker.requireRunning()
  }

  @Test func oneThatGoesOnDoesSoWhereItWas() throws {
    let (broker, client) = try publishTen()
    let first = try client.subscribe("t", stream: 1, cursor: "c")
    try client.receiveRecords(10, stream: 1)
    try client.send(Commit(nextOffset: 3), stream: 1)
    client.close()
    let second = try broker.client()
    let again = try second.subscribe(
      "t", stream: 1, from: .offset(7), epoch: first.epoch, cursor: "c")
    #expect(again.nextOffset == 7)
    #expect(try place("c", second) == 3)
    try second.receiveRecords(3, stream: 1)
    // Records received on the first connection may be committed on this one.
    try second.send(Commit(nextOffset: 5), stream: 1)
    try second.roundTrip()
    #expect(try place("c", second) == 5)
    try broker.requireRunning()
  }

  @Test func theLaterSubscriptionTakesItOver() throws {
    let (broker, client) = try publishTen()
    try client.subscribe("t", stream: 1, cursor: "c")
    try client.receiveRecords(10, stream: 1)
    let other = try broker.client()
    try other.subscribe("t", stream: 1, cursor: "c")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.cursorTaken))
    #expect(try other.listCursors(of: "t").cursors.map(\.members) == [1])
    // Also on one connection.
    try other.subscribe("t", stream: 2, cursor: "c")
    try other.receiveEnd(stream: 1)
    #expect(other.events(1).last == .fault(.cursorTaken))
    // A late commit of the former subscription is ignored.
    try other.send(Commit(nextOffset: 9), stream: 1)
    try other.roundTrip()
    #expect(try place("c", other) == 0)
    try broker.requireRunning()
  }

  @Test func commitsAreHeldToWhatWasSent() throws {
    let (broker, client) = try publishTen()
    try client.subscribe("t", stream: 1, granted: 4, cursor: "c")
    try client.receiveRecords(4, stream: 1)
    try client.send(Commit(nextOffset: 5), stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.unsupported))
    #expect(try place("c", client) == 0)
    try client.subscribe("t", stream: 2)
    try client.send(Commit(nextOffset: 1), stream: 2)
    try client.receiveEnd(stream: 2)
    #expect(client.events(2).last == .fault(.unsupported))
    try broker.requireRunning()
  }

  @Test func movingAndDeletingEndTheSubscriptionInUse() throws {
    let (broker, client) = try publishTen()
    let epoch = try client.subscribe("t", stream: 1, cursor: "c").epoch
    try client.receiveRecords(10, stream: 1)
    try client.moveCursor("c", of: "t", to: .last(3))
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.cursorMoved))
    #expect(try place("c", client) == 7)
    // A subscriber that resumes from before gets an error, since the cursor was moved.
    try client.sendSubscribe("t", stream: 1, from: .offset(10), epoch: epoch, cursor: "c")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1) == [.fault(.cursorMoved)])
    #expect(try client.subscribe("t", stream: 1, cursor: "c").nextOffset == 7)

    try client.deleteCursor("c", of: "t")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .fault(.cursorDeleted))
    #expect(try place("c", client) == nil)
    try client.sendSubscribe("t", stream: 1, from: .offset(10), epoch: epoch, cursor: "c")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1) == [.fault(.cursorDeleted)])

    // Moving creates a cursor.
    try client.moveCursor("new", of: "t", to: .offset(4))
    #expect(try client.subscribe("t", stream: 1, cursor: "new").nextOffset == 4)
    try broker.requireRunning()
  }

  @Test func requestsThatMakeNoSenseAreRefused() throws {
    let (broker, client) = try publishTen(BrokerProcess("--max-cursors", "2"))
    try client.send(CursorDelete(topic: "t", name: "c"), stream: 5)
    try client.expectFault(.unknownCursor, stream: 5)
    try client.send(CursorDelete(topic: "other", name: "c"), stream: 5)
    try client.expectFault(.unknownTopic, stream: 5)
    try client.send(CursorMove(topic: "other", name: "c", to: .earliest), stream: 5)
    try client.expectFault(.unknownTopic, stream: 5)
    try client.send(CursorMove(topic: "t", name: "a b", to: .earliest), stream: 5)
    try client.expectFault(.invalidTopic, stream: 5)
    try client.send(CursorList(topic: "other", limit: 1), stream: 5)
    try client.expectFault(.unknownTopic, stream: 5)
    try client.sendSubscribe("t", stream: 6, cursor: "a b")
    try client.expectFault(.invalidTopic, stream: 6)
    try client.moveCursor("a", of: "t", to: .earliest)
    try client.moveCursor("b", of: "t", to: .earliest)
    try client.send(CursorMove(topic: "t", name: "c", to: .earliest), stream: 5)
    try client.expectFault(.limitReached, stream: 5)
    try client.sendSubscribe("t", stream: 7, cursor: "c")
    try client.expectFault(.limitReached, stream: 7)
    // No part of the denied subscriptions remains.
    #expect(try client.show("t").summary.subscriptions == 0)
    try broker.requireRunning()
  }

  @Test func theyAreListedPageByPage() throws {
    let (broker, client) = try publishTen()
    for name in ["b", "a", "d", "c"] { try client.moveCursor(name, of: "t", to: .offset(5)) }
    try client.subscribe("t", stream: 1, cursor: "c")
    let first = try client.listCursors(of: "t", limit: 3)
    #expect(first.cursors.map(\.name) == ["a", "b", "c"] && first.more)
    #expect(first.cursors.map(\.members) == [0, 0, 1])
    #expect(first.cursors.allSatisfy { $0.kind == .cursor && $0.nextOffset == 5 && $0.end == 10 })
    #expect(first.cursors[0].idle > 0 && first.cursors[2].idle == 0)
    let second = try client.listCursors(of: "t", after: "c", limit: 3)
    #expect(second.cursors.map(\.name) == ["d"] && !second.more)
    try broker.requireRunning()
  }

  @Test func whatIsOwedIsKeptNoLongerThanTheTopicKeepsIt() throws {
    let (broker, client) = try publishTen(BrokerProcess("--replay-records", "5"))
    try client.moveCursor("c", of: "t", to: .earliest)
    #expect(try place("c", client) == 5)
    // More than the grace for subscribers in progress.
    try client.openPublication("t", stream: 1000)
    for _ in 0..<60 { try client.publish([[UInt8](repeating: 1, count: 100_000)], stream: 1000) }
    try client.receiveAcknowledgements(stream: 1000)
    try client.subscribe("t", stream: 1, granted: 0, cursor: "c")
    try client.roundTrip()
    guard case .lag(let missed, let next)? = client.events(1).dropFirst().first else {
      Issue.record("no lag: \(client.events(1))")
      return
    }
    #expect(missed == next - 5)
    try client.cancel(stream: 1)
    try client.moveCursor("d", of: "t", to: .offset(0))
    try client.sendSubscribe("t", stream: 2, lag: .fail, cursor: "c")
    try client.receiveRecords(1, stream: 2)
    try broker.requireRunning()
  }

  @Test func anotherLifeOfTheTopicIsNewToIt() throws {
    let broker = try BrokerProcess("--scope", "while-connected")
    let client = try broker.client()
    let before = try client.subscribe("t", stream: 1, cursor: "c").epoch
    try client.publishAll(["a", "b"], to: "t")
    try client.receiveRecords(2, stream: 1)
    try client.send(Commit(nextOffset: 2), stream: 1)
    try client.cancel(stream: 1)
    try client.publishAll(["x", "y", "z"], to: "t")
    try client.sendSubscribe("t", stream: 1, lag: .fail, cursor: "c")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1) == [.fault(.epochChanged)])
    try client.publishAll(["x", "y", "z"], to: "t")
    let after = try client.subscribe("t", stream: 1, cursor: "c")
    #expect(after.epoch != before && after.nextOffset == 0)
    try broker.requireRunning()
  }

  @Test func whatCameBeforeTheEndIsCommittedBehindIt() throws {
    let (broker, client) = try publishTen()
    try client.end("t", stream: 1002)
    try client.subscribe("t", stream: 1, cursor: "c")
    try client.receiveEnd(stream: 1)
    #expect(client.events(1).last == .complete(.finished))
    try client.send(Commit(nextOffset: 4), stream: 1)
    // This offset is invalid, and there is no subscription left to end.
    try client.send(Commit(nextOffset: 11), stream: 1)
    try client.roundTrip()
    #expect(try place("c", client) == 4)
    // Once another subscription uses the stream number, commits go to that one.
    try client.subscribe("t", stream: 1, granted: 0)
    try client.send(Commit(nextOffset: 8), stream: 1)
    try client.roundTrip()
    #expect(try place("c", client) == 4)
    try broker.requireRunning()
  }

  @Test func whatAFilterKeepsBackNeedsNoCommit() throws {
    let (broker, client) = try publishTen()
    let never = [RecordFilter.Condition(.key, .exists)]
    try client.subscribe("t", stream: 1, cursor: "c", where: never)
    try client.receive(until: "LIVE") { client.subscriptions[1]!.isLive }
    try client.cancel(stream: 1)
    #expect(try place("c", client) == 10)
    try broker.requireRunning()
  }
}
