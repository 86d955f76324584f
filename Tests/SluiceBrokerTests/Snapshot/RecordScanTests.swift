import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The newest records of a topic, as they are shown without attaching a stream.
@Suite struct LastRecordsTests {
  private static func last(
    _ count: Int, of topic: String = "t", bytes: Int = .max, _ setting: SnapshotSetting
  ) -> [RecordSnapshot]? {
    let found = Shared<[RecordSnapshot]?>(nil)
    setting.broker.lastRecords(of: topic, count: count, bytes: bytes) { records in
      found.update { $0 = records }
    }
    return found.value
  }

  @Test func theNewestComeInOrder() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    setting.publish([1, 2], from: 0, by: publisher)
    let time = setting.world.wallClock
    setting.run(for: .seconds(1))
    setting.publish([3, 4], from: 2, by: publisher)
    let records = try #require(Self.last(3, setting))
    #expect(records.map(\.offset) == [1, 2, 3])
    #expect(records.map(\.payload.count) == [2, 3, 4])
    #expect(records[0].time <= time && records[0].time > time - 1_000)
    #expect(records[1].time >= time + 1_000)
    #expect(records.allSatisfy { $0.key == nil && $0.headers.isEmpty })
    #expect(Self.last(100, setting)?.count == 4)
    #expect(Self.last(0, setting) == [])
    #expect(try setting.topic("t").traffic.sent == 0)
  }

  @Test func noMoreBytesAreShownThanWereAskedFor() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    setting.publish([10, 20, 30], from: 0, by: publisher)
    #expect(Self.last(10, bytes: 50, setting)?.map(\.offset) == [1, 2])
    #expect(Self.last(10, bytes: 49, setting)?.map(\.offset) == [2])
    #expect(Self.last(10, bytes: 29, setting) == [])
  }

  @Test func keysAndHeadersAreShown() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    var batch = BatchBuilder()
    [UInt8]("k".utf8).withUnsafeBytes { key in
      [UInt8]("v".utf8).withUnsafeBytes { payload in
        try! batch.append(key: key, headers: [([1], [2, 3])], payload: payload)
      }
    }
    publisher.send(SessionProbe.publishFrame(batch, from: 0, stream: 1))
    setting.run()
    let record = try #require(Self.last(1, setting)?.first)
    #expect(record.key == [UInt8]("k".utf8))
    #expect(record.headers == [RecordSnapshot.Header(name: [1], value: [2, 3])])
    #expect(record.payload == [UInt8]("v".utf8))
  }

  @Test func thereIsNothingOfWhatThereIsNot() throws {
    let setting = try SnapshotSetting()
    #expect(Self.last(1, of: "nowhere", setting) == nil)
    _ = try setting.subscriber("empty", granted: 1)
    #expect(Self.last(1, of: "empty", setting) == [])
  }
}
