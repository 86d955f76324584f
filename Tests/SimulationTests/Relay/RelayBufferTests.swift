import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Bytes that wait because of other nodes count towards the bytes buffered by a broker's connections.
@Suite struct RelayBufferTests {
  private func buffered(_ relay: RelayWorld) -> Int { relay.nodes[1].broker.metrics[.bufferedBytes] }

  private func connections(_ relay: RelayWorld) -> [Connection] {
    relay.nodes[1].broker.contexts.flatMap(\.connections)
  }

  /// A client of the second node that doesn't read its subscriptions, while the first node's topics `t.0`, `t.1` … get 40 kB a round.
  private func begin(_ frames: [any Frame], rounds: Int = 40, _ relay: RelayWorld) -> ScriptedClient {
    let (producer, slow) = (relay.connect(to: 0), relay.connect(to: 1))
    for index in frames.indices {
      let stream = UInt32(index + 1)
      producer.send(PublishOpen(topic: "t.\(index)", acknowledgement: .received), stream: stream)
      slow.send(frames[index], stream: stream)
    }
    relay.settle()
    slow.isPaused = true
    for round in 0..<rounds {
      for index in frames.indices {
        producer.publish(10, from: round * 10, size: 4_000, stream: UInt32(index + 1))
      }
      relay.settle(.milliseconds(20))
    }
    relay.settle(.seconds(1))
    return slow
  }

  private func subscriptions(_ count: Int) -> [any Frame] {
    (0..<count).map { Subscribe(topic: "t.\($0)", start: .earliest, grantedThrough: Credit.unlimited) }
  }

  @Test func framesThatWaitForASubscriberAreItsConnections() throws {
    let relay = try RelayWorld()
    let slow = begin(subscriptions(1), relay)
    let connection = try #require(connections(relay).first)
    let waiting = try #require(connection.streams.session.object(1) as? RelayedSubscription).waitingBytes
    #expect(waiting > 100_000)
    #expect(connection.buffered >= waiting)
    #expect(buffered(relay) == connection.buffered)
    slow.isPaused = false
    relay.settle(.seconds(2))
    #expect(slow.records(on: 1).count == 400)
    #expect(buffered(relay) == 0)
  }

  @Test func soAreThoseOfAPattern() throws {
    let relay = try RelayWorld()
    let pattern = SubscribePattern(
      pattern: "t.*", start: .earliest, grantedThrough: Credit.unlimited)
    let slow = begin([pattern], relay)
    let connection = try #require(connections(relay).first)
    #expect(connection.streams.relayedBytes > 100_000)
    #expect(connection.buffered >= connection.streams.relayedBytes)
    #expect(buffered(relay) == connection.buffered)
    slow.send(Cancel(), stream: 1)
    slow.isPaused = false
    relay.settle(.seconds(2))
    #expect(connection.streams.relayedBytes == 0)
    #expect(buffered(relay) == 0)
  }

  @Test func theConnectionForWhichTheMostWaitsIsClosed() throws {
    let relay = try RelayWorld { $0.limits.buffered = 1 << 20 }
    let idle = relay.connect(to: 1)
    _ = begin(subscriptions(24), rounds: 10, relay)
    #expect(relay.nodes[1].broker.metrics[.closedForBuffering] == 1)
    #expect(connections(relay).count == 1)
    #expect(!idle.hasEnded)
    #expect(buffered(relay) == 0)
  }

  /// A producer of the second node with a topic of the first node, whose loop is stalled for a while.
  private func publish(_ relay: RelayWorld) throws -> (ScriptedClient, SimulatedLoop) {
    let producer = relay.connect(to: 1)
    producer.send(PublishOpen(topic: "t.0", acknowledgement: .received, producer: 7), stream: 1)
    relay.settle()
    let owner = try #require(relay.nodes[0].broker.contexts[0].loop as? SimulatedLoop)
    owner.stall()
    for round in 0..<40 { producer.publish(10, from: round * 10, size: 4_000, stream: 1) }
    relay.settle(.seconds(1))
    return (producer, owner)
  }

  @Test func bytesThatWaitForAnotherNodeAreCounted() throws {
    let relay = try RelayWorld()
    let (producer, owner) = try publish(relay)
    #expect(buffered(relay) > 100_000)
    owner.resume()
    relay.settle(.seconds(2))
    #expect(try producer.frames(on: 1).last { $0.header.type == .ack }?.decoded(Ack.self).through == 400)
    #expect(buffered(relay) == 0)
  }

  @Test func theLinkForWhichTheMostWaitsIsClosedAndNothingIsLost() throws {
    let relay = try RelayWorld { $0.limits.buffered = 1 << 20 }
    let (producer, owner) = try publish(relay)
    #expect(relay.nodes[1].broker.metrics[.closedForBuffering] == 1)
    #expect(connections(relay).count == 1)
    #expect(producer.refusal(on: 1) == .topicMoved)
    #expect(buffered(relay) == 0)
    owner.resume()
    relay.settle(.seconds(2))
    producer.send(PublishOpen(topic: "t.0", acknowledgement: .received, producer: 7), stream: 2)
    relay.settle()
    let opened = try producer.frames(on: 2).first?.decoded(PublishOpened.self)
    let next = try #require(opened).nextSequence
    #expect(relay.nodes[0].broker.core.registry.find("t.0")?.summary.nextOffset == next)
  }
}
