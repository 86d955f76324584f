import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Reading records of a topic without attaching a stream.
@Suite struct RecordScanTests {
  private typealias Item = (key: String?, headers: [(name: String, value: String)], payload: String)

  /// A page, or the error.
  private static func page(
    _ query: RecordQuery, of topic: String = "t", _ setting: SnapshotSetting
  ) throws -> Result<RecordPage, WireError> {
    let found = Shared<Result<RecordPage, WireError>?>(nil)
    setting.broker.records(of: topic, query, on: setting.brokerLoops[0]) { result in
      found.update { $0 = result }
    }
    try setting.wait(for: "records") { found.value != nil }
    return found.value!
  }

  private static func last(
    _ count: Int, bytes: Int = .max, _ setting: SnapshotSetting
  ) throws -> [RecordSnapshot] {
    try page(RecordQuery(count: count, bytes: bytes), setting).get().records
  }

  /// Publishes one batch.
  private static func publish(
    _ items: [Item], from sequence: UInt64, by peer: ScenePeer, _ setting: SnapshotSetting
  ) throws {
    var batch = BatchBuilder()
    for item in items {
      try Array(item.payload.utf8).withUnsafeBytes { payload in
        let headers = item.headers.map { (Array($0.name.utf8), Array($0.value.utf8)) }
        guard let key = item.key else {
          return try batch.append(key: nil, headers: headers, payload: payload)
        }
        try Array(key.utf8).withUnsafeBytes { try batch.append(key: $0, headers: headers, payload: payload) }
      }
    }
    peer.send(SessionProbe.publishFrame(batch, from: sequence, stream: 1))
    setting.run()
  }

  @Test func theNewestComeInOrder() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    setting.publish([1, 2], from: 0, by: publisher)
    let time = setting.world.wallClock
    setting.run(for: .seconds(1))
    setting.publish([3, 4], from: 2, by: publisher)
    let records = try Self.last(3, setting)
    #expect(records.map(\.offset) == [1, 2, 3])
    #expect(records.map(\.payload.count) == [2, 3, 4])
    #expect(records[0].time <= time && records[0].time > time - 1_000)
    #expect(records[1].time >= time + 1_000)
    #expect(records.allSatisfy { $0.key == nil && $0.headers.isEmpty })
    #expect(try Self.last(100, setting).count == 4)
    #expect(try setting.topic("t").traffic.sent == 0)
    let later = try Self.page(RecordQuery(.from(.time(time + 1_000))), setting).get()
    #expect(later.records.map(\.offset) == [2, 3])
  }

  @Test func noMoreBytesAreShownThanWereAskedForButForOneRecord() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    setting.publish([10, 20, 30], from: 0, by: publisher)
    #expect(try Self.last(10, bytes: 50, setting).map(\.offset) == [1, 2])
    #expect(try Self.last(10, bytes: 49, setting).map(\.offset) == [2])
    #expect(try Self.last(10, bytes: 29, setting).map(\.offset) == [2])
    let first = try Self.page(RecordQuery(.from(.earliest), bytes: 30), setting).get()
    #expect(first.records.map(\.offset) == [0, 1])
    #expect(first.from == 0 && first.through == 2 && first.nextOffset == 3)
    let second = try Self.page(RecordQuery(.from(.offset(2)), bytes: 1), setting).get()
    #expect(second.records.map(\.offset) == [2])
    #expect(second.through == 3)
  }

  @Test func keysAndHeadersAreShownAndLookedFor() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let items: [Item] = [
      ("red", [("source", "shop 7")], "one apple"), (nil, [], "two pears"), ("blue", [], "three apples"),
      (nil, [("red", "")], "four plums"), ("redder", [], ""),
    ]
    try Self.publish(items, from: 0, by: publisher, setting)
    let all = try Self.page(RecordQuery(), setting).get().records
    #expect(all.map { $0.key.map { String(decoding: $0, as: UTF8.self) } } == items.map(\.key))
    #expect(
      all[0].headers == [RecordSnapshot.Header(name: Array("source".utf8), value: Array("shop 7".utf8))])
    func found(_ key: String? = nil, _ text: String = "") throws -> [UInt64] {
      let key = key.map { Array($0.utf8) }
      let forward = try Self.page(RecordQuery(.from(.earliest), key: key, text: Array(text.utf8)), setting)
        .get()
      let backward = try Self.page(RecordQuery(key: key, text: Array(text.utf8)), setting).get()
      #expect(forward.records == backward.records)
      #expect(forward.scannedRecords == 5 && backward.scannedRecords == 5)
      return forward.records.map(\.offset)
    }
    #expect(try found("red") == [0])
    #expect(try found("") == [])
    #expect(try found(nil, "apple") == [0, 2])
    #expect(try found(nil, "red") == [0, 3, 4])
    #expect(try found(nil, "shop 7") == [0])
    #expect(try found("blue", "apple") == [2])
    #expect(try found("blue", "pear") == [])
    #expect(try found(nil, "Apple") == [])
  }

  @Test func thereIsNothingOfWhatThereIsNot() throws {
    let setting = try SnapshotSetting()
    let missing = try Self.page(RecordQuery(), of: "nowhere", setting)
    #expect(throws: WireError.self) { try missing.get() }
    _ = try setting.subscriber("empty", granted: 1)
    for start in [
      RecordQuery.Start.before(nil), .before(7), .from(.earliest), .from(.offset(9)), .from(.last(3)),
    ] {
      let page = try Self.page(RecordQuery(start, text: [1]), of: "empty", setting).get()
      #expect(page.records.isEmpty && page.from == 0 && page.through == 0 && !page.isCut)
    }
  }

  /// Consecutive pages, in either direction, contain each matching record once, whatever their limits.
  @Test(arguments: [1, 3, 100], [1, 2_000, Int.max])
  func pagesLeaveNothingOutAndRepeatNothing(count: Int, scanned: Int) throws {
    for isCompact in [false, true] {
      let setting = try SnapshotSetting { $0.topicDefaults.compact = isCompact }
      let publisher = try setting.publisher("t")
      for part in 0..<8 {
        let items = (part * 100..<part * 100 + 100).map { number -> Item in
          (
            "\(number % 331)", [],
            number % 7 == 0 ? "wanted \(number)" : String(repeating: "x", count: number % 40 + 1)
          )
        }
        try Self.publish(items, from: UInt64(part) * 100, by: publisher, setting)
      }
      let wanted = (0..<800).filter { $0 % 7 == 0 && (!isCompact || $0 + 331 >= 800) }.map(UInt64.init)
      for text in ["wanted", ""] {
        let all = text.isEmpty ? (0..<800).filter { !isCompact || $0 + 331 >= 800 }.map(UInt64.init) : wanted
        var query = RecordQuery(.from(.earliest), text: Array(text.utf8), count: count, scannedBytes: scanned)
        var forward: [UInt64] = []
        var offset: UInt64 = 0
        repeat {
          let page = try Self.page(query, setting).get()
          guard page.through > offset else { throw ProbeViolation("page from \(offset) goes nowhere") }
          #expect(page.records.count <= count)
          #expect(page.isCut || page.through == 800 || page.records.count == count)
          forward += page.records.map(\.offset)
          offset = page.through
          query.start = .from(.offset(offset))
        } while offset < 800
        #expect(forward == all)
        query.start = .before(nil)
        var backward: [UInt64] = []
        offset = 800
        repeat {
          let page = try Self.page(query, setting).get()
          guard page.from < offset else { throw ProbeViolation("page before \(offset) goes nowhere") }
          #expect(page.through == offset && page.records.count <= count)
          backward = page.records.map(\.offset) + backward
          offset = page.from
          query.start = .before(offset)
        } while offset > (isCompact ? 800 - 331 : 0)
        #expect(backward == all)
      }
    }
  }

  /// The scan's own portion is 256 KiB.
  @Test(arguments: [1, 64 << 10, Int.max])
  func recordsLongerThanAnyPortionAreScannedOneByOne(scanned: Int) throws {
    for isCompact in [false, true] {
      let setting = try SnapshotSetting { $0.topicDefaults.compact = isCompact }
      let publisher = try setting.publisher("t")
      let items = (0..<9).map { number -> Item in
        ("\(number)", [], number % 4 == 0 ? "wanted" : String(repeating: "x", count: 300 << 10))
      }
      for (index, item) in items.enumerated() {
        try Self.publish([item], from: UInt64(index), by: publisher, setting)
      }
      var (forward, backward): ([UInt64], [UInt64]) = ([], [])
      var query = RecordQuery(.from(.earliest), text: Array("wanted".utf8), scannedBytes: scanned)
      var offset: UInt64 = 0
      while offset < 9 {
        let page = try Self.page(query, setting).get()
        guard page.through > offset else { throw ProbeViolation("page from \(offset) goes nowhere") }
        forward += page.records.map(\.offset)
        offset = page.through
        query.start = .from(.offset(offset))
      }
      query.start = .before(nil)
      while offset > 0 {
        let page = try Self.page(query, setting).get()
        guard page.from < offset else { throw ProbeViolation("page before \(offset) goes nowhere") }
        backward = page.records.map(\.offset) + backward
        offset = page.from
        query.start = .before(offset)
      }
      #expect(forward == [0, 4, 8] && backward == [0, 4, 8])
    }
  }

  @Test func theSearchEndsAtItsLimitAndSaysHowFarItWent() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    setting.publish([Int](repeating: 96, count: 1_000), from: 0, by: publisher)
    let page = try Self.page(
      RecordQuery(.from(.earliest), text: Array("b".utf8), scannedBytes: 10_000), setting
    ).get()
    #expect(page.isCut && page.records.isEmpty)
    #expect(page.scannedRecords == page.through && (90...110).contains(page.through))
    #expect(page.scannedBytes == Int(page.scannedRecords) * 100)
  }

  @Test func recordsInStorageAreFoundAndAStoreThatFailsIsTold() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable(.os))
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 7)
    try client.publish((0..<500).map { "record \($0)" }, stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    try setting.restart()
    client = try setting.client()

    let loop = try EpollLoop.start(name: "scan")
    defer {
      loop.stop()
      loop.join()
    }
    func page(_ query: RecordQuery) throws -> Result<RecordPage, WireError> {
      let found = Shared<Result<RecordPage, WireError>?>(nil)
      setting.broker.records(of: "t", query, on: loop) { result in found.update { $0 = result } }
      try eventually("records") { found.value != nil }
      return found.value!
    }
    let newest = try page(RecordQuery(count: 3)).get()
    #expect(newest.records.map(\.offset) == [497, 498, 499])
    #expect(newest.records.map(\.payload) == (497..<500).map { Array("record \($0)".utf8) })
    let time = newest.records[0].time
    let found = try page(RecordQuery(.from(.earliest), text: Array("record 23".utf8))).get()
    #expect(found.records.map(\.offset) == [23] + (230..<240).map(UInt64.init))
    let some = try page(RecordQuery(.before(300), text: Array("9".utf8), count: 2)).get()
    #expect(some.records.map(\.offset) == [298, 299])
    let since = try page(RecordQuery(.from(.time(time - 3_600_000)), count: 1)).get()
    #expect(since.records.map(\.offset) == [0])
    let none = try page(RecordQuery(.from(.time(time + 3_600_000)))).get()
    #expect(none.records.isEmpty && none.from == 500)
    #expect(try client.show("t").summary.subscriptions == 0)
  }
}
