import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The topics of all nodes, listed at one node.
@Suite struct RelayListTests {
  private let names = (0..<60).map { "t\($0).é" } + ["a", "b.c", "zz"]

  /// Topics spread over three nodes.
  private func cluster(access: RelayWorld.Access? = nil) throws -> RelayWorld {
    let relay = try RelayWorld(nodes: 3, access: access)
    for shard in 0..<RelayWorld.shards { relay.move(ShardID(rawValue: UInt32(shard)), to: shard % 3) }
    let creator = relay.connect(to: 0, credentials: access == nil ? .none : PlainAccess.password(of: "ada"))
    for name in names {
      creator.send(TopicCreate(topic: name, settings: TopicSettings()), stream: 1)
      relay.settle()
    }
    #expect(creator.types.allSatisfy { $0 == .topicInfo })
    #expect(relay.nodes.allSatisfy { $0.broker.core.registry.count > 5 })
    return relay
  }

  private func list(_ relay: RelayWorld, _ client: ScriptedClient, limit: UInt32) throws -> [String] {
    var listed: [String] = []
    while true {
      client.forget()
      client.send(TopicList(after: listed.last ?? "", limit: limit), stream: 1)
      relay.settle()
      let page = try #require(client.frames(on: 1).first).decoded(Topics.self)
      #expect(page.topics.count <= limit && (!page.more || !page.topics.isEmpty))
      listed += page.topics.map(\.topic)
      guard page.more, !page.topics.isEmpty else { return listed }
    }
  }

  @Test(arguments: [UInt32(1), 7, 1_000])
  func allNodesTopicsComeInOrder(limit: UInt32) throws {
    let relay = try cluster()
    let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    for node in 0..<3 { #expect(try list(relay, relay.connect(to: node), limit: limit) == sorted) }
  }

  @Test func aClientSeesWhatItMayKnowOf() throws {
    let rules = ["ada": "all >", "bob": "subscribe a subscribe b.>"]
    let relay = try cluster(access: .init(rules: [rules, rules, rules]))
    let bob = relay.connect(to: 1, credentials: PlainAccess.password(of: "bob"))
    #expect(try list(relay, bob, limit: 10) == ["a", "b.c"])
  }

  @Test func aNodeThatCannotBeReachedIsWaitedForAndThenNamed() throws {
    let relay = try cluster()
    relay.settle(.seconds(60))
    relay.world.network.cut(relay.nodes[2].address)
    let client = relay.connect(to: 1)
    client.send(TopicList(after: "", limit: 10), stream: 1)
    client.send(TopicList(after: "", limit: 10), stream: 2)
    relay.settle(.seconds(4))
    #expect(client.frames(on: 1).isEmpty)
    client.send(Cancel(), stream: 2)
    relay.settle(.seconds(2))
    #expect(client.refusal(on: 1) == .topicMoved && client.types(on: 2) == [.cancelled])
    relay.world.network.heal(relay.nodes[2].address)
    relay.settle(.seconds(6))
    #expect(try list(relay, client, limit: 100).count == names.count)
  }

  @Test func pagesAreCutWhereOneOfThemEnds() {
    func page(_ names: [String], more: Bool) -> Topics {
      Topics(
        topics: names.map {
          TopicSummary(
            topic: $0, epoch: 1, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
            publications: 0)
        }, more: more)
    }
    func merged(_ pages: [Topics], limit: Int = 10) -> (names: [String], more: Bool) {
      let page = RelayedList.merged(pages, after: "", limit: limit)
      return (page.topics.map(\.topic), page.more)
    }
    let (short, long) = (page(["a", "c"], more: true), page(["b", "c", "d"], more: false))
    #expect(merged([short, long]) == (["a", "b", "c"], true))
    #expect(merged([long, page([], more: false)]) == (["b", "c", "d"], false))
    #expect(merged([long, page(["a"], more: false)], limit: 2) == (["a", "b"], true))
    #expect(merged([page([], more: true), long]) == ([], true))
  }
}
