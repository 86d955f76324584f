import Testing

@testable import SluiceMQTT

/// The values of `$SYS/broker/…` in simulated time.
@Suite struct SystemValuesTests {
  private static let second: UInt64 = 1_000_000_000

  private func text(_ name: String, in values: MQTTSystemValues) -> String? {
    values.values.first { $0.topic == "$SYS/broker/\(name)" }?.text
  }

  @Test func figuresHaveTheirTopics() {
    var values = MQTTSystemValues(version: "sluice version 1", start: 5 * Self.second)
    var figures = MQTTFigures()
    figures.traffic.packetsReceived = 11
    figures.traffic.packetsSent = 12
    figures.traffic.publishesReceived = 13
    figures.traffic.publishesSent = 14
    figures.traffic.bytesReceived = 15
    figures.traffic.bytesSent = 16
    figures.publishesDropped = 17
    (figures.connected, figures.mostConnected, figures.disconnected, figures.expired) = (3, 9, 4, 2)
    (figures.subscriptions, figures.sharedSubscriptions) = (21, 6)
    (figures.retained, figures.retainedBytes) = (7, 700)
    values.update(figures, now: 15 * Self.second + 1)
    let expected = [
      "version": "sluice version 1", "uptime": "10 seconds", "clients/connected": "3", "clients/active": "3",
      "clients/disconnected": "4", "clients/inactive": "4", "clients/total": "7", "clients/maximum": "9",
      "clients/expired": "2", "messages/received": "11", "messages/sent": "12", "messages/stored": "7",
      "store/messages/count": "7", "store/messages/bytes": "700", "retained messages/count": "7",
      "publish/messages/received": "13", "publish/messages/sent": "14", "publish/messages/dropped": "17",
      "bytes/received": "15", "bytes/sent": "16", "subscriptions/count": "21",
      "shared_subscriptions/count": "6",
    ]
    for (name, value) in expected { #expect(text(name, in: values) == value, "\(name)") }
    #expect(values.values.count == expected.count + 27)
    #expect(Set(values.values.map(\.brokerName)).count == values.values.count)
    #expect(
      values.values.first { $0.topic == "$SYS/broker/retained messages/count" }?.brokerName
        == "%24SYS.broker.retained%20messages.count")
  }

  /// Averages of a steady rate approach it, each by its own time, however often they are computed.
  @Test(arguments: [1, 10, 60]) func loadsAreAveragesPerMinute(interval: Int) throws {
    var values = MQTTSystemValues(version: "", start: 0)
    var figures = MQTTFigures()
    for time in stride(from: interval, through: 300, by: interval) {
      figures.traffic.publishesReceived = UInt64(10 * time)
      values.update(figures, now: UInt64(time) * Self.second)
    }
    // 600 a minute; after five minutes all but e^-5, e^-1 and e^(-1/3) of it.
    #expect(text("load/publish/received/1min", in: values) == "595.96")
    #expect(text("load/publish/received/5min", in: values) == "379.27")
    #expect(text("load/publish/received/15min", in: values) == "170.08")
    #expect(text("load/publish/sent/1min", in: values) == "0.00")
    // No message arrives for an hour, and no client reads the values.
    values.update(figures, now: 3900 * Self.second)
    #expect(text("load/publish/received/1min", in: values) == "0.00")
    #expect(text("load/publish/received/15min", in: values) == "3.12")
  }

  @Test func onlyChangedValuesGetTheRevision() {
    var values = MQTTSystemValues(version: "v", start: 0)
    var figures = MQTTFigures()
    values.update(figures, now: Self.second)
    #expect(values.values.allSatisfy { $0.revision == 1 })
    figures.connected = 1
    values.update(figures, now: Self.second + 1)
    #expect(
      values.values.filter { $0.revision == 2 }.map(\.topic)
        == ["clients/connected", "clients/active", "clients/total"].map { "$SYS/broker/\($0)" })
    // A clock that stands, or goes back, changes nothing.
    values.update(figures, now: 0)
    #expect(values.values.allSatisfy { $0.revision < 3 })
  }

  @Test(arguments: [
    ("$SYS", true), ("$SYS/", true), ("$SYS/broker/uptime", true), ("$SYS/broker/connection", true),
    ("$SYS/broker/connections/a", true), ("$SYS/broker/connection/a/state", false), ("$SYSTEM/a", false),
    ("a/$SYS/broker", false), ("$sys/a", false), ("SYS/a", false),
  ]) func clientsMayNotPublishToReservedTopics(name: String, isReserved: Bool) throws {
    #expect(MQTTSystemTopic.isReserved(name) == isReserved)
    #expect(MQTTSystemTopic.isReserved(broker: try MQTTTopicName.brokerName(name)) == isReserved)
  }
}
