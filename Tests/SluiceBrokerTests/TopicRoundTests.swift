import SluiceIO
import SluiceLog
import SluiceSession
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A pass over all topics visits a share of them per turn.
@Suite struct TopicRoundTests {
  private static let count = TopicRound.share * 2 + 10

  @Test func aTurnVisitsAShareAndTheRoundEveryTopicOnce() throws {
    let setting = try SnapshotSetting()
    let registry = setting.broker.core.registry
    for number in 0..<Self.count { _ = try registry.use("t.\(number)") }
    let loop = setting.brokerLoops[0]
    let visits = Shared<[String]>([])
    let isOver = Flag()
    loop.perform {
      TopicRound.run(over: registry, on: loop) { topic in
        visits.update { $0.append(topic.name) }
      } completion: {
        isOver.raise()
      }
    }
    #expect(visits.value.count == TopicRound.share)
    // Topics that are deleted or created during the pass.
    try registry.delete(visits.value[0])
    try registry.delete("t.999")
    _ = try registry.use("u")
    setting.run(for: .milliseconds(100))
    #expect(isOver.isRaised)
    let visited = visits.value
    #expect(Set(visited).count == visited.count)
    let expected = Set((0..<Self.count).map { "t.\($0)" }).subtracting(["t.999"]).union(["u"])
    #expect(Set(visited) == expected)
  }

  @Test func recordsThatAreTooOldGoFromEveryTopic() throws {
    let setting = try SnapshotSetting { $0.topicDefaults.replayAge = 1_000 }
    let registry = setting.broker.core.registry
    let topics = try (0..<Self.count).map { try registry.use("t.\($0)") }
    for topic in topics {
      let batch = SessionProbe.batch([1])
      batch.bytes.withUnsafeBytes {
        _ = topic.append(
          $0, count: 1, at: setting.world.wallClock, in: topic.epoch, using: PublishingBudget.Allowance())
      }
    }
    #expect(topics.allSatisfy { $0.epoch.kept().records == 1 })
    setting.run(for: .seconds(4))
    #expect(topics.allSatisfy { $0.epoch.log.statistics().memoryBytes == 0 })
  }

  @Test func topicsThatAreAbandonedAreDeletedAShareATime() throws {
    var configuration = BrokerConfiguration()
    configuration.topicDefaults.autoDelete = true
    configuration.limits.autoDeleteTime = .seconds(1)
    let registry = TopicRegistry(configuration, identity: 1)
    for name in ["a", "b", "c", "d", "e"] { _ = try registry.use(name) }
    registry.deleteAbandoned(now: MonotonicTime(nanoseconds: 0))
    let later = MonotonicTime(nanoseconds: 2_000_000_000)
    let first = registry.deleteAbandoned(atMost: 2, now: later)
    #expect(first.deleted.map(\.name) == ["a", "b"])
    #expect(first.last == "b")
    let second = registry.deleteAbandoned(after: "b", atMost: 3, now: later)
    #expect(second.deleted.map(\.name) == ["c", "d", "e"])
    #expect(second.last == nil)
    #expect(registry.count == 0)
  }
}
