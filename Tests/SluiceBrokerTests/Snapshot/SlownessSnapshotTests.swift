import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Why and for how long a subscriber lags, in simulated time.
@Suite struct SlownessSnapshotTests {
  private func shown(_ setting: SnapshotSetting) throws -> [TopicInfo.Subscription] {
    try setting.topic("t").subscriptions.map(\.info).sorted { $0.connection < $1.connection }
  }

  @Test func aSubscriberThatHasEveryRecordIsNotSlow() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let reader = try setting.subscriber("t", granted: 1)
    setting.publish([1], from: 0, by: publisher)
    setting.run(for: .seconds(5))
    let info = try #require(try shown(setting).first)
    #expect(info.slowness == .none && info.slow == 0 && info.age == 0)
    withExtendedLifetime(reader) {}
  }

  @Test func oneThatDoesNotAskIsToldFromOneThatDoesNotRead() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let idle = try setting.subscriber("t", granted: 0)
    let stuck = try setting.subscriber("t", granted: .max)
    stuck.pauseReading(true)
    for number in 0..<64 {
      setting.publish([Int](repeating: 10_000, count: 10), from: UInt64(number * 10), by: publisher)
    }
    setting.run(for: .seconds(7))
    let infos = try shown(setting)
    #expect(infos.map(\.slowness) == [.demand, .unread])
    for info in infos {
      #expect((6_500..<7_500).contains(info.slow) && (6_500..<7_500).contains(info.age), "\(info)")
    }
    // TOPIC_INFO contains the same.
    let topic = try #require(setting.broker.core.registry.find("t"))
    let loop = setting.brokerLoops[0]
    let found = Shared<TopicInfo?>(nil)
    TopicInspection(topic, showing: .all, at: loop.now, wallClock: loop.wallClock).run { info in
      found.update { $0 = info }
    }
    try setting.wait(for: "the description") { found.value != nil }
    let told = try #require(found.value?.subscriptions.sorted { $0.connection < $1.connection })
    #expect(told.map(\.slowness) == [.demand, .unread] && told.allSatisfy { $0.age >= 6_500 })
    withExtendedLifetime((idle, stuck)) {}
  }
}
