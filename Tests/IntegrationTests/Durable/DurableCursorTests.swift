import Glibc
import SluiceWire
import TestSupport
import Testing

/// Durable cursors of a topic whose last records a crash may lose, frame by frame.
@Suite(.onItsOwnThread) struct DurableCursorTests {
  private let stage: DurableStage

  init() throws {
    stage = try DurableStage()
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "os")
    try stage.sluice("pub", "t", "--ack", "durable", "a", "b", "c", "d", "e")
  }

  /// Subscribes with the cursor, and receives the first five records.
  private func read(commit offset: UInt64?) throws -> Subscribed {
    let client = try stage.broker.client()
    let place = try client.subscribe("t", stream: 1, cursor: "c")
    try client.receiveRecords(5, stream: 1)
    if let offset { try client.send(Commit(nextOffset: offset), stream: 1) }
    try client.roundTrip()
    return place
  }

  @Test func whatWasOnlyReceivedIsNotCommittedByComingBack() throws {
    let before = try read(commit: 2)
    // The commit is on disk once this record is.
    try stage.sluice("pub", "t", "--ack", "durable", "f")
    try stage.restart(SIGKILL)
    let client = try stage.broker.client()
    let after = try client.subscribe("t", stream: 1, from: .offset(5), epoch: before.epoch, cursor: "c")
    #expect(after.epoch != before.epoch && after.nextOffset == 5)
    try client.receiveRecords(1, stream: 1)
    #expect(try client.listCursors(of: "t").cursors.map(\.nextOffset) == [2])
    // The client may still commit records that it received earlier.
    try client.send(Commit(nextOffset: 4), stream: 1)
    try client.roundTrip()
    #expect(try client.listCursors(of: "t").cursors.map(\.nextOffset) == [4])
  }

  @Test func aCursorThatSomebodyWasGivenOutlivesACrash() throws {
    let before = try read(commit: nil)
    try stage.restart(SIGKILL)
    let client = try stage.broker.client()
    #expect(try client.listCursors(of: "t").cursors.map(\.nextOffset) == [0])
    let after = try client.subscribe("t", stream: 1, from: .offset(5), epoch: before.epoch, cursor: "c")
    #expect(after.nextOffset == 5)
  }
}
