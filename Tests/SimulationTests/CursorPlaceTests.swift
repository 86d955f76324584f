import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The position of a durable cursor whose subscription filters records: it follows the broker's scan past filtered-out records.
@Suite struct CursorPlaceTests {
  /// A broker with a store, a publication on stream 1 of one client, and a subscription with the cursor "c" on stream 2 of another.
  private struct Scene {
    let store = MemoryStore()
    let small: SmallWorld
    let producer: ScriptedClient
    let reader: ScriptedClient
    private(set) var head: UInt64 = 0

    init(_ storage: TopicSettings.Storage = .memory, _ change: (inout TopicSettings) -> Void = { _ in })
      throws
    {
      small = try SmallWorld(storage: StoreConfiguration(store))
      producer = small.connect()
      reader = small.connect()
      var settings = TopicSettings()
      settings.storage = storage
      change(&settings)
      producer.send(TopicCreate(topic: "t", settings: settings), stream: 9)
      producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
      small.settle()
    }

    static let wanted = RecordFilter([.init(.key, .equals(Array("yes".utf8)))])

    func subscribe(filter: RecordFilter = Self.wanted, granted: UInt64 = Credit.unlimited) {
      reader.send(
        Subscribe(topic: "t", start: .earliest, grantedThrough: granted, cursor: "c", filter: filter),
        stream: 2)
      small.settle()
    }

    mutating func publish(_ keys: String..., payload: [UInt8] = [1]) throws { try publish(keys, payload) }

    mutating func publish(_ keys: [String], _ payload: [UInt8] = [1]) throws {
      var batch = BatchBuilder()
      for key in keys {
        try Array(key.utf8).withUnsafeBytes { key in
          try payload.withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
        }
      }
      producer.publish(batch, from: head, stream: 1)
      head += UInt64(keys.count)
      small.settle()
    }

    func commit(_ offset: UInt64) {
      reader.send(Commit(nextOffset: offset), stream: 2)
      small.settle()
    }

    /// The offsets that the reader was sent.
    var delivered: [UInt64] { reader.records(on: 2).map(\.offset) }

    private var topic: Topic { get throws { try #require(small.broker.core.registry.find("t")) } }

    var place: UInt64 {
      get throws {
        try #require(try topic.cursors(after: "", limit: 10, now: small.loop.now).page.first).nextOffset
      }
    }

    var lag: UInt64 { get throws { try topic.consumers(atMost: 10, now: small.loop.now).lag } }

    /// The stored position of the cursor.
    var stored: UInt64? {
      get throws {
        let id = try #require(try store.contents().topics.first { $0.row.name == "t" }).id
        return try store.states(of: id, .cursor).first.map {
          try StoredCursor(decoding: $0.value).found.place.nextOffset
        }
      }
    }
  }

  @Test(arguments: [TopicSettings.Storage.memory, .durable])
  func recordsThatAreNotWantedAreNoLag(storage: TopicSettings.Storage) throws {
    var scene = try Scene(storage)
    scene.subscribe()
    try scene.publish(Array(repeating: "no", count: 500))
    #expect(try scene.place == 500 && scene.lag == 0)
    // A delivered record counts as lag until it is committed.
    try scene.publish("yes", "no", "no")
    #expect(scene.delivered == [500])
    #expect(try scene.place == 500 && scene.lag == 3)
    scene.commit(501)
    #expect(try scene.place == 503 && scene.lag == 0)
    try scene.publish("no")
    #expect(try scene.place == 504 && scene.lag == 0)
  }

  @Test func thePlaceIsStoredWithinTheCommitInterval() throws {
    var scene = try Scene(.durable)
    scene.subscribe()
    try scene.publish(Array(repeating: "no", count: 500))
    scene.small.settle(StoreService.idleDelay)
    #expect(try scene.stored == 500)
  }

  @Test func withoutDemandThePlaceIsTheNextWantedRecord() throws {
    var scene = try Scene()
    scene.subscribe(granted: 0)
    try scene.publish("no", "no", "yes", "no")
    #expect(scene.delivered.isEmpty)
    #expect(try scene.place == 2 && scene.lag == 2)
  }

  @Test func aRecordThatWasSentAndNotCommittedComesAgain() throws {
    var scene = try Scene()
    scene.subscribe()
    try scene.publish("no", "yes", "no", "yes", "no")
    scene.commit(2)
    scene.reader.send(Cancel(), stream: 2)
    scene.small.settle()
    #expect(try scene.place >= 2 && scene.place <= 3)
    scene.reader.forget()
    scene.subscribe()
    #expect(scene.delivered == [3])
  }

  @Test func theLastCommitAfterTheEndCoversWhatIsNotWanted() throws {
    var scene = try Scene()
    scene.subscribe()
    try scene.publish("yes", "no", "no")
    scene.producer.send(Complete(.finished), stream: 1)
    scene.small.settle()
    #expect(scene.reader.frames(on: 2).last?.header.type == .complete)
    scene.commit(1)
    #expect(try scene.place == 3 && scene.lag == 0)
  }

  /// Records that newer ones have replaced are never sent, without any filter.
  @Test func replacedRecordsOfACompactTopicAreNoLag() throws {
    var scene = try Scene { $0.compact = true }
    try scene.publish("a", "b", "a", "b", "a")
    // A deletion is the last record.
    try scene.publish("c")
    try scene.publish(["c"], [])
    scene.subscribe(filter: RecordFilter())
    #expect(scene.delivered == [3, 4])
    scene.commit(5)
    #expect(try scene.place == 7 && scene.lag == 0)
  }

  @Test func aRecordThatIsTooLongForTheClientIsNotPassed() throws {
    for filter in [RecordFilter(), Scene.wanted] {
      var scene = try Scene()
      let small = scene.small.connect(maximumFrame: 65_536)
      try scene.publish(["yes"], [1])
      try scene.publish(["yes"], [UInt8](repeating: 1, count: 100_000))
      small.send(
        Subscribe(topic: "t", start: .earliest, grantedThrough: 10, cursor: "c", filter: filter), stream: 2)
      scene.small.settle()
      #expect(small.frames(on: 2).last?.header.type == .error)
      small.send(Commit(nextOffset: 1), stream: 2)
      scene.small.settle()
      #expect(try scene.place == 1)
    }
  }

  /// Groups skip filtered-out records, too.
  @Test(arguments: [JoinGroup.Acknowledgement.automatic, .explicit])
  func aGroupPassesByWhatIsNotWanted(acknowledgement: JoinGroup.Acknowledgement) throws {
    var scene = try Scene()
    let settings = JoinGroup.Settings(acknowledgement: acknowledgement, filter: Scene.wanted)
    scene.reader.send(
      JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 0), stream: 3)
    scene.small.settle()
    try scene.publish(Array(repeating: "no", count: 500))
    #expect(try scene.place == 500 && scene.lag == 0)
  }

  /// For any filter, deliveries and commits: the position is never before the last commit, and never after the first wanted record that isn't
  /// committed.
  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func thePlaceIsNeverAheadOfARecordThatIsOwed(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    var scene = try Scene(Bool.random(using: &random) ? .durable : .memory)
    var wanted: [UInt64] = []
    var granted = UInt64.random(in: 0...5, using: &random)
    var committed: UInt64 = 0
    scene.subscribe(granted: granted)
    for _ in 0..<60 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        var keys: [String] = []
        for offset in scene.head..<scene.head + UInt64.random(in: 1...20, using: &random) {
          let isWanted = Int.random(in: 0..<6, using: &random) == 0
          keys.append(isWanted ? "yes" : "no")
          if isWanted { wanted.append(offset) }
        }
        try scene.publish(keys)
      case 5..<7:
        granted += UInt64.random(in: 1...3, using: &random)
        scene.reader.send(Demand(grantedThrough: granted), stream: 2)
      default:
        guard let through = scene.delivered.randomElement(using: &random), through >= committed else {
          continue
        }
        committed = through + 1
        scene.commit(committed)
      }
      scene.small.settle()
      let delivered = scene.delivered
      #expect(delivered == Array(wanted.prefix(Int(granted))), "seed \(seed)")
      // The first wanted record that isn't committed, or else the head.
      let owed = wanted.first { $0 >= committed } ?? scene.head
      let place = try scene.place
      #expect(place <= owed && place >= committed, "seed \(seed)")
      if delivered.allSatisfy({ $0 < committed }) { #expect(place == owed, "seed \(seed)") }
    }
    // The next subscription gets the wanted records that weren't committed.
    scene.reader.send(Cancel(), stream: 2)
    scene.small.settle()
    scene.reader.forget()
    scene.subscribe()
    #expect(scene.delivered == wanted.filter { $0 >= committed }, "seed \(seed)")
  }
}
