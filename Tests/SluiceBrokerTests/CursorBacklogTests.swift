import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Backlogs of durable cursors and groups in CURSORS.
@Suite struct CursorBacklogTests {
  private func cursors(_ setting: SnapshotSetting) throws -> [CursorInfo] {
    let topic = try #require(setting.broker.core.registry.find("t"))
    let loop = setting.brokerLoops[0]
    let page = topic.cursors(after: "", limit: 10, now: loop.now).page
    #expect(topic.unmeasured(page).isEmpty)
    return topic.measured(page, wallClock: loop.wallClock)
  }

  @Test func aBacklogIsInBytesAndTime() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let reader = try setting.peer("reader")
    reader.send(
      Subscribe(topic: "t", start: .earliest, grantedThrough: 10, cursor: "c").encoded(stream: 1))
    try setting.wait(for: "the subscription") { reader.records[1] != nil }
    #expect(try cursors(setting).map(\.bytes) == [0])
    setting.publish([10, 10, 10], from: 0, by: publisher)
    setting.run(for: .seconds(4))
    setting.publish([20], from: 3, by: publisher)
    reader.send(Commit(nextOffset: 2).encoded(stream: 1))
    setting.run(for: .seconds(6))
    let behind = try #require(try cursors(setting).first)
    // Two records of 10 and 20 bytes, each with its length word; the first is ten seconds old in simulated time.
    #expect(behind.nextOffset == 2 && behind.end == 4 && behind.bytes == 38)
    #expect((10_000..<10_100).contains(behind.age), "\(behind.age)")
    reader.send(Commit(nextOffset: 4).encoded(stream: 1))
    setting.run()
    #expect(try cursors(setting).map(\.bytes) == [0] && cursors(setting).map(\.age) == [0])
  }

  @Test func aGroupTellsWhatCameAgainAndWhatWasGivenUp() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let member = try setting.peer("member")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, deliveries: 2, deadLetters: "dead")
    member.send(
      JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 10)
        .encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    setting.publish([1, 1], from: 0, by: publisher)
    setting.run(for: .milliseconds(10))
    for delivery in 1...2 as ClosedRange<UInt32> {
      member.send(Settle(.retry, delivery: delivery, firstOffset: 0, count: 1).encoded(stream: 1))
      setting.run(for: .milliseconds(10))
    }
    let group = try #require(try cursors(setting).first)
    #expect(group.kind == .group && group.redeliveries == 1 && group.deadLetters == 1)
    #expect(group.outstanding == 1 && group.abandoned == 0 && group.missed == 0)
  }

  @Test func whatIsNotInMemoryIsMeasuredInTheStore() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    _ = try client.create("t", DurableSetting.durable())
    try client.publishAll((0..<5).map { "record \($0)" }, to: "t")
    try client.moveCursor("c", of: "t", to: .offset(2))
    try client.moveCursor("e", of: "t", to: .offset(5))
    // After a restart no record is in memory.
    try setting.restart()
    let cursors = try setting.client().listCursors(of: "t").cursors
    // Three records of eight bytes, each with its length word; the bytes of a batch are divided evenly.
    #expect(cursors.map(\.name) == ["c", "e"] && cursors.map(\.bytes) == [36, 0], "\(cursors)")
    #expect(cursors[0].age < 600_000 && cursors[1].age == 0)
  }

  @Test func aPageOfTheLongestNamesFitsTheSmallestFrame() {
    let cursor = CursorInfo(
      name: String(repeating: "n", count: 255), kind: .group, epoch: 0, nextOffset: 0, end: 0, members: 0,
      outstanding: 0, idle: 0)
    let page = Cursors(cursors: Array(repeating: cursor, count: RequestStream.cursorsPerPage), more: true)
    #expect(page.encoded(stream: 1).count - FrameHeader.size <= Limits.smallestFrame)
  }
}
