import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct TopicRegistryTests {
  private func registry(topics: Int = 100, identity: UInt64 = 1) -> TopicRegistry {
    var configuration = BrokerConfiguration()
    configuration.limits.topics = topics
    configuration.topicDefaults = TopicSettings(replayRecords: 10, replayBytes: 1000, replayAge: nil)
    return TopicRegistry(configuration, identity: identity)
  }

  @Test func aTopicIsMadeByItsFirstUse() throws {
    let registry = registry()
    #expect(registry.find("t") == nil)
    let topic = try registry.use("t")
    #expect(try registry.use("t") === topic)
    #expect(registry.find("t") === topic)
    var expected = TopicSettings(replayRecords: 10, replayBytes: 1000, replayAge: TopicSettings.unlimited)
    expected.scope = .forever
    expected.flow = .free
    expected.connect = .immediate
    expected.bufferRecords = 1024
    expected.bufferBytes = 8 << 20
    expected.withoutSubscribers = .buffer
    expected.lag = .skip
    expected.compact = false
    expected.autoDelete = false
    expected.storage = .memory
    expected.sync = .always
    expected.whenProducerLost = .wait
    #expect(topic.settings == expected)
  }

  @Test func whatASettingLeavesOpenIsTheDefault() throws {
    let topic = try registry().create("t", TopicSettings(replayBytes: 5, replayAge: 9))
    #expect(topic.settings.replayRecords == 10)
    #expect(topic.epoch.log.retention == Retention(records: 10, bytes: 5, ageMilliseconds: 9))
  }

  @Test func theFirstRuleThatMatchesGivesWhatTheCreatorLeavesOpen() throws {
    var configuration = BrokerConfiguration()
    var lossless = TopicSettings(replayRecords: 3)
    lossless.flow = .lossless
    configuration.topicRules = [
      TopicRule(pattern: try TopicPattern("a.*"), settings: lossless),
      TopicRule(pattern: try TopicPattern("a.>"), settings: TopicSettings(replayRecords: 4)),
    ]
    let registry = TopicRegistry(configuration, identity: 1)
    #expect(try registry.use("a.b").settings.flow == .lossless)
    #expect(try registry.use("a.b").settings.replayRecords == 3)
    #expect(try registry.use("a.b.c").settings.replayRecords == 4)
    #expect(try registry.use("a.b.c").settings.flow == .free)
    #expect(try registry.use("b").settings.replayRecords == TopicSettings.unlimited)
    #expect(try registry.create("a.x", TopicSettings(replayRecords: 9)).settings.replayRecords == 9)
    #expect(try registry.use("a.x").settings.flow == .lossless)
  }

  @Test func aTopicOfItsUsersGoesSomeTimeAfterTheLastOfThem() throws {
    let registry = registry()
    var settings = TopicSettings()
    settings.autoDelete = true
    func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: 0) + .seconds(seconds) }
    _ = try registry.use("kept")
    let topic = try registry.create("t", settings)
    registry.deleteAbandoned(now: at(100))
    // A client has looked it up, and is about to attach.
    #expect(try registry.use("t") === topic)
    registry.deleteAbandoned(now: at(111))
    #expect(registry.find("t") === topic)
    let epoch = topic.attachSubscription(now: at(111)).epoch
    registry.deleteAbandoned(now: at(200))
    topic.detachSubscription(from: epoch)
    registry.deleteAbandoned(now: at(300))
    registry.deleteAbandoned(now: at(309))
    #expect(registry.find("t") === topic)
    registry.deleteAbandoned(now: at(310))
    #expect(registry.find("t") == nil)
    #expect(topic.isDeleted)
    #expect(registry.find("kept") != nil)
    #expect(try registry.create("t", settings) !== topic)
  }

  @Test func inboxesKeepNothingAndGoWithTheirUsers() throws {
    var configuration = BrokerConfiguration()
    let plain = TopicRegistry(configuration, identity: 1)
    #expect(try plain.use("_inbox.1").settings.autoDelete == true)
    #expect(try plain.use("_inbox.1").settings.replayRecords == 0)
    #expect(try plain.use("_inboxes").settings.autoDelete == false)
    // A rule overrides the default.
    configuration.topicRules = [
      TopicRule(pattern: try TopicPattern("_inbox.>"), settings: TopicSettings(replayRecords: 3))
    ]
    let ruled = TopicRegistry(configuration, identity: 1)
    #expect(try ruled.use("_inbox.1").settings.autoDelete == false)
    #expect(try ruled.use("_inbox.1").settings.replayRecords == 3)
  }

  @Test func creatingAgainNeedsTheSameSettings() throws {
    let registry = registry()
    let topic = try registry.create("t", TopicSettings(replayRecords: 5))
    #expect(try registry.create("t", TopicSettings(replayRecords: 5)) === topic)
    #expect(try registry.use("t") === topic)
    #expect(code { try registry.create("t", TopicSettings()) } == .topicExists)
  }

  @Test func namesAreChecked() throws {
    let registry = registry()
    for name in ["", "a b", "a.*", ".a"] {
      #expect(code { try registry.use(name) } == .invalidTopic)
      #expect(code { try registry.create(name, TopicSettings()) } == .invalidTopic)
      #expect(code { try registry.known(name) } == .invalidTopic)
    }
    #expect(code { try registry.known("t") } == .unknownTopic)
    #expect(code { try registry.delete("t") } == .unknownTopic)
  }

  @Test func aDeletedTopicIsOverAndItsSuccessorIsAnother() throws {
    let registry = registry()
    let topic = try registry.use("t")
    publish(topic, 3)
    try registry.delete("t")
    #expect(topic.epoch.condition == .deleted)
    #expect(topic.refusal?.code == .topicDeleted)
    #expect(topic.epoch.log.statistics().records == 0)
    let next = try registry.use("t")
    #expect(next !== topic)
    #expect(next.epoch.number != topic.epoch.number)
    #expect(next.epoch.log.head == 0)
  }

  @Test func epochsDontComeTwiceAndAreNeverAny() throws {
    var epochs: Set<UInt64> = []
    for identity in UInt64(0)..<20 {
      let registry = registry(identity: identity)
      for _ in 0..<50 {
        #expect(epochs.insert(try registry.use("t").epoch.number).inserted)
        try registry.delete("t")
      }
    }
    #expect(!epochs.contains(0))
  }

  @Test func thereAreAsManyTopicsAsMayBe() throws {
    let registry = registry(topics: 2)
    _ = try registry.use("a")
    _ = try registry.use("b")
    #expect(code { try registry.use("c") } == .limitReached)
    _ = try registry.use("a")
    try registry.delete("b")
    _ = try registry.use("c")
  }

  @Test func pagesFollowOneAnotherInByteOrder() throws {
    let registry = registry()
    let names = ["b", "a.b", "Z", "ä", "a", "a-b", "aa"]
    for name in names { _ = try registry.use(name) }
    let sorted = ["Z", "a", "a-b", "a.b", "aa", "b", "ä"]
    for limit in 1...8 {
      var all: [String] = []
      var more = true
      while more {
        let page = registry.list(after: all.last ?? "", limit: limit)
        #expect(page.page.count <= limit)
        all += page.page.map(\.topic)
        more = page.more
      }
      #expect(all == sorted, "\(limit) at a time")
    }
    #expect(registry.list(after: "a.z", limit: 1).page.map(\.topic) == ["aa"])
    #expect(registry.list(after: "", limit: 0).more)
  }

  @Test func aPageOfSomeNamesAsksForNoOthers() throws {
    let registry = registry()
    for name in ["a.1", "a.2", "b.1", "b.2", "c.1"] { _ = try registry.use(name) }
    var asked: [String] = []
    let spans = [NameSpan(first: "a.", end: "a/"), NameSpan(first: "c.", end: "c/")]
    let page = registry.list(after: "a.1", limit: 10, in: spans) { name in
      asked.append(name)
      return true
    }
    #expect(page.page.map(\.topic) == ["a.2", "c.1"])
    #expect(!page.more)
    #expect(asked == ["a.2", "c.1"])
  }

  @Test func threadsThatUseTheSameNameGetTheSameTopic() throws {
    let registry = registry()
    let found = Shared<[String: Set<UInt64>]>([:])
    try concurrently(
      (0..<4).map { _ in
        {
          for number in 0..<50 {
            let epoch = try registry.use("t.\(number)").epoch.number
            found.update { _ = $0["t.\(number)", default: []].insert(epoch) }
          }
        }
      })
    #expect(found.value.count == 50)
    #expect(found.value.values.allSatisfy { $0.count == 1 })
  }

  // MARK: A topic's epoch

  @Test func aTopicEndsOnceAndTakesNothingAfterwards() throws {
    let topic = try registry().use("t")
    let epoch = topic.epoch
    #expect(epoch.condition == .open)
    #expect(topic.refusal == nil)
    publish(topic, 2)
    #expect(topic.end(.failure(code: .producerFailure, message: "broken"), in: epoch) == nil)
    #expect(epoch.condition == .ended)
    #expect(topic.end(.finished, in: epoch)?.code == .topicEnded)
    #expect(epoch.ending == .failure(code: .producerFailure, message: "broken"))
    guard case .refused(let fault) = publish(topic, 1) else {
      Issue.record("an ended topic took a record")
      return
    }
    #expect(fault.code == .topicEnded)
    #expect(fault.message.contains("broken"))
    #expect(epoch.log.head == 2)
    let summary = topic.summary
    #expect(summary.nextOffset == 2)
    #expect(summary.ending == epoch.ending)
  }

  @Test func offsetsCountUpOverBatches() throws {
    let topic = try registry().use("t")
    for (count, last) in [(1, 0), (5, 5), (2, 7)] as [(Int, UInt64)] {
      guard case .appended(let offset) = publish(topic, count) else {
        Issue.record("an open topic refused a record")
        return
      }
      #expect(offset == last)
    }
  }

  @discardableResult
  private func publish(_ topic: Topic, _ count: Int) -> Topic.AppendResult {
    SessionProbe.batch([Int](repeating: 4, count: count)).bytes.withUnsafeBytes {
      topic.append($0, count: UInt32(count), at: 1, in: topic.epoch, using: PublishingBudget.Allowance())
    }
  }

  /// The code of the error that `body` throws.
  private func code(_ body: () throws -> some Any) -> ErrorCode? {
    do {
      _ = try body()
      return nil
    } catch {
      return (error as? WireError)?.code
    }
  }

  // MARK: Shards

  @Test func aShardComesAndGoesWithItsTopicsAlone() throws {
    let (routes, count) = (ShardRoutes(), 4)
    routes.update(shardCount: count, [:])
    let registry = TopicRegistry(BrokerConfiguration(), identity: 1, routes: routes)
    let shards = (0..<UInt32(count)).map { ShardID(rawValue: $0) }
    for shard in shards { #expect(registry.open(shard).isEmpty) }
    var names = (0..<60).map { "t.\($0)" }.sorted()
    for name in names { _ = try registry.use(name) }
    for name in names.prefix(20) { try registry.delete(name) }
    // Another topic of the same name replaces a deleted one.
    for name in names.prefix(5) { _ = try registry.use(name) }
    names.removeSubrange(5..<20)
    for shard in shards {
      let own = names.filter { routes.shard(of: $0) == shard }
      #expect(!own.isEmpty)
      #expect(registry.beginLeaving(shard).map(\.name) == own)
      #expect(own.allSatisfy { registry.find($0) == nil })
      #expect(registry.beginLeaving(shard).isEmpty)
    }
    #expect(registry.count == 0)
  }

  // MARK: Patterns

  @Test func aPatternFindsWhatIsThereAndIsToldOfWhatIsMade() throws {
    let registry = registry()
    for name in ["a.b", "b.a", "a.a", "_inbox.a"] { _ = try registry.use(name) }
    let told = Shared<[String]>([])
    let (number, topics, _) = try registry.watch(
      try TopicPattern("*.*"), Watcher { topic in told.update { $0.append(topic.name) } })
    #expect(topics.map(\.name) == ["a.a", "a.b", "b.a"])
    _ = try registry.use("a.b")
    _ = try registry.use("c.c")
    _ = try registry.use("c")
    _ = try registry.use("_inbox.b")
    try registry.delete("a.b")
    _ = try registry.create("a.b", TopicSettings())
    #expect(told.value == ["c.c", "a.b"])
    registry.endWatch(try TopicPattern("*.*"), number)
    _ = try registry.use("d.d")
    #expect(told.value == ["c.c", "a.b"])
    #expect(registry.watches == 0)
  }

  @Test func thereAreNoMorePatternsThanTheLimit() throws {
    var configuration = BrokerConfiguration()
    configuration.limits.patterns = 2
    let registry = TopicRegistry(configuration, identity: 1)
    let pattern = try TopicPattern("a")
    let first = try registry.watch(pattern, Watcher { _ in }).number
    _ = try registry.watch(pattern, Watcher { _ in })
    #expect {
      try registry.watch(pattern, Watcher { _ in })
    } throws: { ($0 as? WireError)?.code == .limitReached }
    registry.endWatch(pattern, first)
    _ = try registry.watch(pattern, Watcher { _ in })
  }

  /// Topics and patterns are created concurrently on several threads: each pattern gets each topic once.
  @Test func noTopicIsMissedOrToldTwice() throws {
    let registry = registry(topics: 10_000)
    let found = (0..<16).map { _ in Shared<[String]>([]) }
    let bodies = (0..<4).map { (thread: Int) -> @Sendable () throws -> Void in
      return {
        for round in 0..<400 {
          _ = try registry.use("t.\(thread).\(round)")
          guard round % 100 == 50 else { continue }
          let mine = found[thread * 4 + round / 100]
          let pattern = try TopicPattern("t.*.*")
          let topics = try registry.watch(
            pattern, Watcher { topic in mine.update { $0.append(topic.name) } }
          ).topics
          mine.update { names in names += topics.map { $0.name } }
        }
      }
    }
    try concurrently(bodies)
    let all = Set(registry.all.map(\.name))
    #expect(all.count == 1_600)
    for names in found {
      #expect(names.value.count == 1_600)
      #expect(Set(names.value) == all)
    }
  }
}

/// Calls a closure with each created topic.
private final class Watcher: TopicWatcher {
  private let body: @Sendable (Topic) -> Void

  init(_ body: @escaping @Sendable (Topic) -> Void) { self.body = body }

  func topicMade(_ topic: Topic, _ epoch: TopicEpoch) { body(topic) }
}
