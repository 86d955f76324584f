import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker

/// Connections, cursors and groups selected by a part of their texts.
@Suite struct SnapshotFilterTests {
  private func found(
    _ filter: String, in setting: SnapshotSetting, connections: Int = 100, consumers: Int = 0
  ) throws -> BrokerSnapshot {
    var request = SnapshotRequest(connections: connections, consumersPerTopic: consumers)
    request.filter = SnapshotFilter(filter)
    return try setting.snapshot(request)
  }

  @Test func connectionsAreFoundByTheirTextsAndTopics() throws {
    let setting = try SnapshotSetting(loops: 2)
    let peers = try ["Anna", "bert", "annabel"].map { try setting.peer($0) }
    let publisher = try setting.publisher("orders.EU")
    func names(_ filter: String, _ limit: Int = 100) throws -> [String] {
      try found(filter, in: setting, connections: limit).connections.map(\.client)
    }
    #expect(try names("anna") == ["Anna", "annabel"])
    #expect(try names("BERT") == ["bert"])
    #expect(try names("orders.eu") == ["publisher"])
    #expect(try names("nothing") == [])
    #expect(try names("").count == 4)
    // All are counted, whatever the limit is.
    let limited = try found("anna", in: setting, connections: 1)
    #expect(limited.connections.map(\.client) == ["Anna"])
    #expect(limited.connectionCount == 4 && limited.selectedConnections == 2)
    #expect(try found("", in: setting).selectedConnections == 4)
    withExtendedLifetime((peers, publisher)) {}
  }

  @Test func cursorsAndGroupsAreFoundByTheirNamesAndTopics() throws {
    let setting = try SnapshotSetting()
    var peers: [ScenePeer] = []
    for (topic, cursor) in [("a", "Billing"), ("a", "mail"), ("bill", "x")] {
      let peer = try setting.peer("reader")
      peer.send(
        Subscribe(topic: topic, start: .earliest, grantedThrough: 1, cursor: cursor).encoded(stream: 1))
      try setting.wait(for: "the subscription") { peer.records[1] != nil }
      peers.append(peer)
    }
    let member = try setting.peer("member")
    member.send(
      JoinGroup(topic: "a", group: "billers", start: .earliest, grantedThrough: 0).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    let topics = try found("bill", in: setting, consumers: 10).topics
    #expect(topics.map { $0.consumers.furthest.map(\.name).sorted() } == [["Billing", "billers"], ["x"]])
    #expect(topics.map(\.consumers.selected) == [2, 1] && topics.map(\.consumers.count) == [3, 1])
    let all = try found("", in: setting, consumers: 10).topics
    #expect(all.map(\.consumers.selected) == [3, 1])
    withExtendedLifetime((peers, member)) {}
  }
}
