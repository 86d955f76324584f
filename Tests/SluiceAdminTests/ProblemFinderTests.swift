import SluiceBroker
import SluiceCommand
import SluiceTopics
import SluiceWire
import Testing

@testable import SluiceAdmin

/// Which conditions are problems, and the sentences that describe them.
@Suite struct ProblemFinderTests {
  private static let start: Int64 = 1_000_000_000

  private func snapshot(at seconds: Int64 = 0, _ change: (inout BrokerSnapshot) -> Void = { _ in })
    -> BrokerSnapshot
  {
    var snapshot = BrokerSnapshot()
    snapshot.time = Self.start + seconds * 1_000
    change(&snapshot)
    return snapshot
  }

  private func found(_ change: (inout BrokerSnapshot) -> Void) -> [Problem] {
    var finder = ProblemFinder()
    return finder.problems(in: snapshot(0, change))
  }

  private func snapshot(_ seconds: Int64, _ change: (inout BrokerSnapshot) -> Void) -> BrokerSnapshot {
    snapshot(at: seconds, change)
  }

  private func subscription(
    _ client: String, lag: UInt64 = 0, age: UInt64 = 0, starved: UInt64 = 0, blocked: UInt64 = 0,
    holding: UInt64 = 0, minute: UInt16 = 0
  ) -> SubscriptionSnapshot {
    SubscriptionSnapshot(
      info: TopicInfo.Subscription(
        connection: 7, client: client, stream: 1, state: .live, nextOffset: 0, granted: 0, sent: 0,
        holding: holding, limit: holding > 0 ? .demand : .none, lastMinute: minute, lastFiveMinutes: 100),
      identity: "alice", lag: lag, blocked: blocked, starved: starved, age: age)
  }

  @Test func atRestThereIsNone() {
    #expect(found { $0.topics = [TopicSnapshot("t") { $0.subscriptions = [subscription("a")] }] } == [])
  }

  /// A limit larger than the disk, as by default, must not hide that the disk is nearly full.
  @Test func aStoreIsNearlyFullWhenItsDiskIs() {
    var storage = StoreSnapshot()
    storage.limit = 1 << 40
    (storage.fileBytes, storage.usedBytes) = (100 << 20, 95 << 20)
    storage.availableBytes = 100 << 20
    #expect(found { $0.storage = storage } == [])
    storage.availableBytes = 1 << 20
    let warned = found { $0.storage = storage }
    #expect(
      warned.map(\.sentence) == [
        "The store is 94 % full: 95.0 MiB of 101 MiB, and its disk has 1.0 MiB left."
      ])
    storage.limit = nil
    #expect(found { $0.storage = storage }.map(\.kind) == [.storageNearlyFull])
    storage.availableBytes = nil
    #expect(found { $0.storage = storage } == [])
  }

  @Test func aFullStoreIsCriticalAndANearlyFullOneAWarning() {
    var storage = StoreSnapshot()
    storage.state = .full
    storage.since = 90_000
    storage.waiting = 2
    storage.message = "the disk has no room"
    let full = found { $0.storage = storage }
    #expect(full.map(\.kind) == [.storageFull] && full[0].severity == .critical)
    #expect(
      full[0].sentence
        == "The store is full. Publishing to durable topics is paused (2 producers are blocked): delete or trim topics, or raise --storage-limit."
    )
    #expect(full[0].since == Self.start - 90_000)
    var nearly = StoreSnapshot()
    nearly.limit = 1 << 30
    nearly.usedBytes = 1_020_054_733
    let warned = found { $0.storage = nearly }
    #expect(warned.map(\.kind) == [.storageNearlyFull] && warned[0].severity == .warning)
    #expect(warned[0].sentence == "The store is 95 % full: 972 MiB of 1.0 GiB.")
    // As everywhere, in whole percents.
    nearly.usedBytes = 1_031_798_784 + (5 << 20)
    #expect(found { $0.storage = nearly }[0].sentence.hasPrefix("The store is 96 % full"))
    nearly.usedBytes = 1 << 29
    #expect(found { $0.storage = nearly } == [])
  }

  @Test func memoryNearItsCeilingIsToldBeforeItIsReached() {
    func memory(_ used: Int) -> [Problem] {
      found { $0.metrics = [(.memoryUsed, used), (.memoryCeiling, 1000)] }
    }
    #expect(memory(899) == [])
    #expect(memory(950).map(\.kind) == [.memoryNearlyFull])
    #expect(
      memory(950)[0].sentence
        == "The memory is 95 % full: 950 B of 1000 B. At 100 % it blocks producers of topics in memory.")
    #expect(memory(1000).map(\.kind) == [.memoryFull])
    #expect(found { $0.metrics = [(.memoryUsed, 5), (.memoryCeiling, 0)] } == [])
  }

  @Test func whoHoldsUpProducersIsNamedWithItsShares() {
    let problems = found { snapshot in
      snapshot.topics = [
        TopicSnapshot("t") { topic in
          topic.heldUp = 12_000
          topic.subscriptions = [subscription("slow", holding: 12_000, minute: 930), subscription("fast")]
        }
      ]
    }
    #expect(
      problems.map(\.sentence) == [
        "slow (alice) on connection 7 blocks the producers of t: it has requested nothing; blocked 93 % of the last minute, 10 % of the last five."
      ])
    #expect(problems[0].place == .connection(7, topic: "t") && problems[0].since == Self.start - 12_000)
    // A short block, or a small share, is no problem.
    let brief = found { snapshot in
      snapshot.topics = [
        TopicSnapshot("t") { $0.subscriptions = [subscription("a", holding: 500, minute: 100)] }
      ]
    }
    #expect(brief == [])
  }

  @Test func producersWithoutASubscriberAreToldOf() {
    let problems = found { $0.topics = [TopicSnapshot("t") { $0.heldUp = 10_000 }] }
    #expect(
      problems.map(\.sentence) == ["The producers of t are blocked: it has no subscriber."])
  }

  @Test func aFreeTopicsLaggardIsAskedWhyItIsSlow() {
    func sentence(_ subscription: SubscriptionSnapshot) -> String? {
      found { $0.topics = [TopicSnapshot("t") { $0.subscriptions = [subscription] }] }.first?.sentence
    }
    #expect(
      sentence(subscription("a", lag: 5, age: 65_000, starved: 61_000))
        == "a (alice) on connection 7 is 1 min 5 s behind on t, 5 records: it has requested nothing for 1 min 1 s."
    )
    #expect(
      sentence(subscription("a", lag: 5, age: 65_000, blocked: 30_000))?.hasSuffix(
        "it hasn't read what it was sent for 30 s; the client is slow, or its network.") == true)
    #expect(
      sentence(subscription("a", lag: 5, age: 65_000))?.hasSuffix(
        "it reads more slowly than records come.") == true)
    #expect(sentence(subscription("a", lag: 5, age: 59_000, starved: 59_000)) == nil)
  }

  @Test func aGroupThatLagsIsToldWithItsMembers() {
    let group = TopicInfo.Consumer(
      name: "g", kind: .group, nextOffset: 1, lag: 9, bytes: 90, age: 3_700_000, members: 2,
      unacknowledged: 4)
    let unknown = TopicInfo.Consumer(name: "c", kind: .cursor, nextOffset: 1, lag: 9)
    let problems = found { snapshot in
      snapshot.topics = [TopicSnapshot("t") { $0.consumers.furthest = [group, unknown] }]
    }
    #expect(
      problems.map(\.sentence) == [
        "Group g of t is 1 h 1 min behind, 9 records: its 2 members have 4 records unacknowledged."
      ])
    #expect(ProblemJSON.object(problems[0]).line.contains("\"link\":\"#/topics/t/consumers/g\""))
  }

  @Test func countersAreLookedAtOverTheLastMinute() {
    var finder = ProblemFinder()
    func rejected(_ count: Int, at seconds: Int64) -> [Problem] {
      finder.problems(in: snapshot(seconds) { $0.metrics = [(.failedAuthentications, count)] })
    }
    // Earlier counts than the first sample don't belong to the last minute.
    #expect(rejected(100, at: 0) == [])
    #expect(rejected(104, at: 10) == [])
    let problems = rejected(107, at: 20)
    #expect(problems.map(\.sentence) == ["7 logins were rejected within the last minute."])
    #expect(problems[0].since == Self.start + 20_000)
    // The problem continues from then, and ends a minute after the last rejection.
    #expect(rejected(107, at: 50)[0].since == Self.start + 20_000)
    #expect(rejected(107, at: 90) == [])
    // Counters of a restarted broker are no attack.
    #expect(rejected(0, at: 91) == [] && rejected(2, at: 92) == [])
  }

  /// A client that keeps trying is slowed down, so that few of its logins are rejected in a minute.
  @Test func loginsThatWaitBehindRejectedOnesAreToldOf() {
    var finder = ProblemFinder()
    func slowed(_ failed: Int, _ slowed: Int, at seconds: Int64) -> [String] {
      finder.problems(
        in: snapshot(seconds) {
          $0.metrics = [(.failedAuthentications, failed), (.slowedAuthentications, slowed)]
        }
      ).map(\.sentence)
    }
    #expect(slowed(0, 0, at: 0) == [])
    #expect(slowed(2, 4, at: 20) == [])
    #expect(
      slowed(3, 1_204, at: 30) == [
        "3 logins were rejected within the last minute, and 1,204 delayed after rejected ones from the same address."
      ])
    #expect(slowed(3, 1_204, at: 91) == [])
  }

  @Test func oneIsToldInTheSingular() {
    var finder = ProblemFinder()
    func metrics(_ count: Int, at seconds: Int64) -> [String] {
      finder.problems(
        in: snapshot(seconds) {
          $0.metrics = [(.failedAuthentications, 6 * count), (.refusedConnections, count)]
        }
      ).map(\.sentence)
    }
    _ = metrics(0, at: 0)
    #expect(
      metrics(1, at: 1) == [
        "6 logins were rejected within the last minute.",
        "1 connection was refused within the last minute: a limit on connections is reached.",
      ])
    func waiting(_ count: Int) -> String? {
      found {
        $0.topics = [TopicSnapshot("t") { ($0.heldUp, $0.waitingForStorage) = (10_000, count) }]
      }.first?.sentence
    }
    #expect(waiting(1) == "1 producer of t is blocked by the store.")
    #expect(waiting(2) == "2 producers of t are blocked by the store.")
    let group = TopicInfo.Consumer(
      name: "g", kind: .group, nextOffset: 1, lag: 1, bytes: 90, age: 3_700_000, members: 1, unacknowledged: 1
    )
    #expect(
      found { $0.topics = [TopicSnapshot("t") { $0.consumers.furthest = [group] }] }.map(\.sentence)
        == ["Group g of t is 1 h 1 min behind, 1 record: its member has 1 record unacknowledged."])
  }

  @Test func aLaggardsNetworkIsToldFromItsClient() {
    func reason(_ slowness: TopicInfo.Slowness) -> String? {
      var slow = subscription("a", lag: 5, age: 65_000, blocked: 30_000)
      (slow.info.slowness, slow.info.slow) = (slowness, 30_000)
      return found { $0.topics = [TopicSnapshot("t") { $0.subscriptions = [slow] }] }.first?.sentence
    }
    #expect(reason(.client)?.hasSuffix(": the client hasn't read what it was sent for 30 s.") == true)
    #expect(reason(.network)?.hasSuffix(": its network hasn't acknowledged what was sent for 30 s.") == true)
    #expect(reason(.unread)?.hasSuffix("the client is slow, or its network.") == true)
  }

  @Test func missedRecordsAreCriticalAndStandFirst() {
    var finder = ProblemFinder()
    func problems(_ missed: UInt64, at seconds: Int64) -> [Problem] {
      finder.problems(
        in: snapshot(seconds) { snapshot in
          snapshot.topics = [
            TopicSnapshot("a") { $0.heldUp = 99_000 }, TopicSnapshot("b") { $0.traffic.missed = missed },
          ]
        })
    }
    #expect(problems(5, at: 0).map(\.kind) == [.heldUp])
    let found = problems(6, at: 1)
    #expect(found.map(\.kind) == [.missedRecords, .heldUp])
    #expect(found[0].sentence.hasPrefix("Subscribers of b missed 1 record within the last minute"))
  }

  @Test func timesAheadOfTheClockAreAWarning() {
    let problems = found { snapshot in
      snapshot.topics = [TopicSnapshot("a"), TopicSnapshot("b") { $0.lead = 600_000 }]
    }
    #expect(problems.map(\.kind) == [.timesAhead] && problems[0].severity == .warning)
    #expect(problems[0].place == .topic("b"))
    #expect(
      problems[0].sentence
        == "The broker's clock was set back: records of b have times up to 10 min 0 s ahead of it, and expire later by as much."
    )
  }

  @Test func noMoreThanSoManyOfAKindAreListed() {
    let problems = found { snapshot in
      snapshot.topics = (0..<50).map { number in TopicSnapshot("t\(number)") { $0.heldUp = 99_000 } }
    }
    #expect(problems.count == 20)
  }

  @Test func thoseThatAreNotListedAreCountedByKind() {
    var finder = ProblemFinder()
    _ = finder.problems(
      in: snapshot { snapshot in
        snapshot.metrics = [(.memoryUsed, 1000), (.memoryCeiling, 1000)]
        snapshot.topics = (0..<50).map { number in
          TopicSnapshot("t\(number)") { $0.heldUp = 99_000 + UInt64(number) }
        }
      })
    #expect(finder.kinds.map(\.kind) == [.memoryFull, .heldUp])
    #expect(finder.kinds.map(\.count) == [1, 50])
    #expect(finder.kinds.map(\.severity) == [.critical, .warning])
    // The time of the first of them.
    #expect(finder.kinds[1].since == Self.start - 99_049)
    #expect(
      finder.kinds.map(\.sentence) == [
        "The memory is full: 1000 B of 1000 B. Producers of topics in memory are blocked: delete or trim topics, or raise --memory.",
        "Producers are blocked in 50 places.",
      ])
    _ = finder.problems(in: snapshot(at: 1))
    #expect(finder.kinds.isEmpty)
  }

  @Test func linksEscapeNames() {
    let problem = Problem(.heldUp, .warning, at: .topic("a/b é"), "It waits.", since: 5)
    #expect(
      ProblemJSON.object(problem).description
        == ##"{"kind":"heldUp","severity":"warning","sentence":"It waits.","since":5,"link":"#/topics/a%2Fb%20%C3%A9","topic":"a/b é"}"##
    )
  }
}
