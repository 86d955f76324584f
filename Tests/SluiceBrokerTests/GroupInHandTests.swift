import SluiceWire
import Testing

@testable import SluiceBroker

/// Records that a group has assigned to a member, but the member's connection hasn't read yet.
@Suite struct GroupInHandTests {
  /// After a takeover, a client may acknowledge to a new owner what the former one delivered, while the new owner assigns the same record to another
  /// member.
  @Test func whatIsDoneMeanwhileIsNotSent() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    let (slow, other) = (try setting.peer("slow"), try setting.peer("other"))
    slow.send(
      JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 200)
        .encoded(stream: 1))
    other.send(
      JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 0)
        .encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    slow.pauseReading(true)
    for number in 0..<20 {
      setting.publish([Int](repeating: 100_000, count: 10), from: UInt64(number * 10), by: publisher)
    }
    setting.run(for: .milliseconds(10))
    other.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 200).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    slow.pauseReading(false)
    setting.run(for: .seconds(1))
    #expect(try (1..<150).contains(#require(slow.records[1]).count))
    // Demand that they don't use is available to others.
    setting.publish([9], from: 200, by: publisher)
    setting.run(for: .seconds(1))
    let records = try #require(slow.records[1])
    #expect(records.last.map { $0.count < 100 } == true, "\(records.count) came")
  }
}
