import SluiceIO
import SluiceLog
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker whose wall clock is set: timestamps of records follow the clock, and no record is retained longer because of it.
@Suite struct ClockTests {
  enum Kind: CaseIterable {
    case memory, durable, compact
  }

  /// A broker with a topic "t", a producer on stream 1, and a subscriber on stream 2 that keeps the topic's records in memory.
  private final class Scene {
    private let store: MemoryStore
    let small: SmallWorld
    let producer: ScriptedClient
    private(set) var head: UInt64
    private var sequence: UInt64 = 0

    init(
      _ kind: Kind, keep: UInt64? = nil, store: MemoryStore = MemoryStore(), clock: Int64? = nil,
      head: UInt64 = 0
    )
      throws
    {
      self.store = store
      self.head = head
      small = try SmallWorld(storage: StoreConfiguration(store)) {
        $0.limits.keepalive = 0
      }
      if let clock { small.world.wallClock = clock }
      producer = small.connect(keepalive: 0)
      var settings = TopicSettings()
      settings.storage = kind == .durable ? .durable : .memory
      settings.compact = kind == .compact
      if let keep { settings.replayAge = keep }
      producer.send(TopicCreate(topic: "t", settings: settings), stream: 9)
      producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
      producer.send(Subscribe(topic: "t", start: .new, grantedThrough: Credit.unlimited), stream: 2)
      small.settle()
    }

    /// Another broker on the same store; its monotonic clock starts again.
    func restarted(keep: UInt64? = nil, clock: Int64? = nil) throws -> Scene {
      small.broker.shutdown()
      small.settle(.seconds(5))
      return try Scene(.durable, keep: keep, store: store, clock: clock, head: head)
    }

    var topic: Topic { get throws { try #require(small.broker.core.registry.find("t")) } }
    var first: UInt64 { get throws { try topic.summary.firstOffset } }
    var row: StoredTopic {
      get throws { try #require(try store.contents().topics.first { $0.row.name == "t" }).row }
    }

    /// Publishes a record with a unique key. Returns its timestamp.
    @discardableResult
    func publish() throws -> Int64 {
      var batch = BatchBuilder()
      try Array("\(head)".utf8).withUnsafeBytes { try batch.append(key: $0, headers: [], payload: $0) }
      producer.publish(batch, from: sequence, stream: 1)
      sequence += 1
      head += 1
      small.settle(.milliseconds(5))
      let log = try topic.epoch.log
      return try #require(log.backlog(from: head - 1)).time
    }

    func setClock(by milliseconds: Int64) { small.world.wallClock += milliseconds }

    /// The offset at which a subscription by timestamp starts.
    func start(at time: Int64) throws -> UInt64 {
      let client = small.connect(keepalive: 0)
      client.send(Subscribe(topic: "t", start: .time(time), grantedThrough: 0), stream: 1)
      small.settle()
      defer { client.close() }
      return try #require(client.frames(on: 1).first).decoded(Subscribed.self).nextOffset
    }
  }

  private static let year: Int64 = 365 * 86_400_000

  @Test(arguments: Kind.allCases)
  func timesOfNewRecordsFollowTheClock(kind: Kind) throws {
    let scene = try Scene(kind)
    var time = try scene.publish()
    // A small step back, as between clocks of event loops: timestamps stay in order.
    scene.setClock(by: -500)
    #expect(try scene.publish() == time)
    for jump: Int64 in [-600_000, 600_000, -10 * Self.year, 3_600_000] {
      scene.setClock(by: jump)
      time = try scene.publish()
      let ahead = time - scene.small.world.wallClock
      #expect(ahead <= RecordClock.step && ahead > -1_000, "\(jump)")
    }
  }

  @Test(arguments: Kind.allCases)
  func aClockThatIsSetBackKeepsNoRecordLonger(kind: Kind) throws {
    let scene = try Scene(kind, keep: 5_000)
    for _ in 0..<3 { try scene.publish() }
    scene.setClock(by: -600_000)
    for _ in 0..<3 { try scene.publish() }
    scene.small.settle(.seconds(3))
    #expect(try scene.first == 0)
    scene.small.settle(.seconds(5))
    #expect(try scene.first == scene.head)
  }

  /// No newer record follows that would show their age.
  @Test(arguments: Kind.allCases)
  func recordsAheadOfTheClockExpireInAQuietTopic(kind: Kind) throws {
    let scene = try Scene(kind, keep: 5_000)
    for _ in 0..<3 { try scene.publish() }
    scene.setClock(by: -600_000)
    scene.small.settle(.seconds(8))
    #expect(try scene.first == scene.head)
  }

  @Test func recordsOfTenYearsAheadExpireAfterRestarts() throws {
    var scene = try Scene(.durable, keep: 3_000)
    scene.setClock(by: 10 * Self.year)
    try scene.publish()
    scene = try scene.restarted(keep: 3_000)
    let time = try scene.publish()
    #expect(abs(time - scene.small.world.wallClock) < 1_000)
    #expect(try scene.row.setbacks.map(\.offset) == [1])
    // A broker that starts later reads the age of the first record from the store.
    scene = try scene.restarted(keep: 3_000, clock: scene.small.world.wallClock)
    scene.small.settle(.seconds(6))
    #expect(try scene.first == 2)
    // Setbacks of removed records are discarded.
    scene.setClock(by: -600_000)
    try scene.publish()
    #expect(try scene.row.setbacks.count <= 1)
  }

  /// A start by timestamp is the first record with that timestamp or a later one, even if timestamps go back.
  @Test(arguments: Kind.allCases)
  func aStartByTimeIsTheFirstRecordOfThatTime(kind: Kind) throws {
    var scene = try Scene(kind)
    var times: [Int64] = []
    for jump: Int64 in [0, 50_000, -600_000, 5_000, 300_000, -20_000, 400_000, -3_600_000, 7_200_000] {
      scene.setClock(by: jump)
      for _ in 0..<3 {
        times.append(try scene.publish())
        scene.setClock(by: 2_000)
      }
    }
    for isRestarted in [false, true] {
      if isRestarted {
        guard kind == .durable else { break }
        scene = try scene.restarted(clock: scene.small.world.wallClock)
      }
      for time in Set(times.flatMap { [$0 - 1, $0, $0 + 1] }).sorted() {
        let expected = times.firstIndex { $0 >= time } ?? times.count
        #expect(try scene.start(at: time) == UInt64(expected), "\(time - times[0])")
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func timesAheadOfTheClockAreAProblem(kind: Kind) throws {
    let scene = try Scene(kind)
    func problems() throws -> [BrokerInfo.Problem] {
      scene.small.settle(.seconds(2))
      let answer = scene.producer.ask(BrokerShow(), stream: 7, in: scene.small)
      return try #require(answer.last).decoded(BrokerInfo.self).problems.filter { $0.kind == "timesAhead" }
    }
    try scene.publish()
    #expect(try problems().isEmpty)
    scene.setClock(by: -600_000)
    #expect(try problems().map(\.topic) == ["t"])
    try scene.publish()
    #expect(try problems().map(\.topic) == ["t"])
    scene.producer.send(TopicTrim(topic: "t", .newest(1)), stream: 9)
    #expect(try problems().isEmpty)
  }

  /// However the clock jumps, no record is retained longer than the limit after the last jump, and no dropped record comes back. Timestamps run ahead of
  /// the clock only as far as the order of records needs.
  @Test(arguments: Kind.allCases, 1...4 as ClosedRange<UInt64>)
  func noJumpOfTheClockKeepsRecords(kind: Kind, seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let scene = try Scene(kind, keep: 5_000)
    var appended: [MonotonicTime] = []
    var floor: UInt64 = 0
    var jumped = scene.small.loop.now
    for _ in 0..<60 {
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        let jumps: [Int64] = [-3_600_000, -600_000, -5_000, -900, 900, 5_000, 600_000]
        scene.setClock(by: jumps.randomElement(using: &random)!)
        jumped = scene.small.loop.now
      case 1: scene.small.settle(.seconds(Int.random(in: 1...10, using: &random)))
      default:
        let time = try scene.publish()
        appended.append(scene.small.loop.now)
        #expect(time <= scene.small.world.wallClock + RecordClock.step, "seed \(seed)")
      }
      scene.small.settle()
      let first = try scene.first
      #expect(first >= floor, "seed \(seed)")
      floor = first
      // Trims run once a second, and timestamps may be ahead by the step.
      let now = scene.small.loop.now
      guard now - jumped > .seconds(8) else { continue }
      let outdated = appended.count { now - $0 > .seconds(8) }
      #expect(first >= outdated, "seed \(seed)")
    }
  }
}
