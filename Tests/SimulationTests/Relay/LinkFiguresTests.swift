import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A node's counters of its links to another node.
@Suite struct LinkFiguresTests {
  private func link(_ relay: RelayWorld) throws -> LinkSnapshot {
    let links = relay.nodes[1].broker.links
    #expect(links.count == 1)
    return try #require(links.first)
  }

  @Test func recordsAndBytesOfEachDirectionAreCounted() throws {
    let relay = try RelayWorld()
    #expect(relay.nodes[1].broker.links.isEmpty)
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 1))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 30), stream: 1)
    relay.settle()
    producer.publish(40, from: 0, size: 100, stream: 1)
    relay.settle()
    var link = try link(relay)
    #expect((link.node, link.connections, link.opened) == ("n0", 1, 1))
    #expect((link.lost, link.failed, link.streams) == (0, 0, 2))
    #expect((link.recordsSent, link.recordsReceived) == (40, 30))
    #expect(link.bytesSent > 40 * 100 && link.bytesReceived > 30 * 100)
    for client in [producer, subscriber] { client.send(Cancel(), stream: 1) }
    relay.settle()
    link = try self.link(relay)
    #expect((link.connections, link.streams) == (1, 0))
    // An idle link is closed, and doesn't count as lost.
    relay.settle(.seconds(60))
    link = try self.link(relay)
    #expect((link.connections, link.opened, link.lost, link.failed) == (0, 1, 0, 0))
    #expect(relay.nodes[0].broker.links.isEmpty)
  }

  @Test func theOwnerSaysWhichNodeItsClientsComeBy() throws {
    let relay = try RelayWorld()
    let (subscriber, asker) = (relay.connect(to: 1), relay.connect(to: 0))
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 30), stream: 1)
    relay.settle()
    asker.send(TopicShow(topic: "t"), stream: 1)
    relay.settle()
    let info = try #require(asker.frames(on: 1).first).decoded(TopicInfo.self)
    #expect(info.subscriptions.map(\.client) == ["test"])
    #expect(info.subscriptions.map(\.node) == ["n1"])
  }

  @Test func connectionsThatAreLostOrCannotBeOpenedAreCounted() throws {
    let relay = try RelayWorld()
    let subscriber = relay.connect(to: 1)
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 30), stream: 1)
    relay.settle()
    let owner = try #require(relay.nodes[0].broker.contexts[0].loop as? SimulatedLoop)
    owner.stall()
    relay.settle(.seconds(20))
    var link = try link(relay)
    #expect((link.connections, link.streams, link.opened, link.lost, link.failed) == (0, 0, 1, 1, 0))
    #expect(subscriber.refusal(on: 1) == .topicMoved)
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 30), stream: 2)
    relay.settle(.seconds(20))
    link = try self.link(relay)
    #expect(link.opened == 1 && link.failed > 0)
    #expect(subscriber.refusal(on: 2) == .topicMoved)
    owner.resume()
    relay.settle(.seconds(5))
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 30), stream: 3)
    relay.settle(.seconds(5))
    link = try self.link(relay)
    #expect((link.connections, link.streams, link.opened, link.lost) == (1, 1, 2, 1))
  }
}
