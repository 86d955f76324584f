import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Demand and back-pressure through another node.
@Suite struct RelayCreditTests {
  @Test(arguments: UInt64(1)...20)
  func aSubscriberGetsWhatItAsksForAndNoMore(seed: UInt64) throws {
    let relay = try RelayWorld(seed: seed, conditions: SimulatedConditions())
    let (producer, subscriber) = (relay.connect(to: 0), relay.connect(to: 1))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    subscriber.send(Subscribe(topic: "t", start: .earliest, grantedThrough: 0), stream: 1)
    relay.settle()
    var (published, granted) = (0, UInt64(0))
    for _ in 0..<40 {
      let count = Int(relay.world.random.next(in: 0...60))
      if count > 0 { producer.publish(count, from: published, size: count * 40 + 4, stream: 1) }
      published += count
      granted += relay.world.random.next(below: 51)
      if granted > 0 { subscriber.send(Demand(grantedThrough: granted), stream: 1) }
      relay.settle(.milliseconds(Int64(relay.world.random.next(in: 0...30))))
      #expect(UInt64(subscriber.records(on: 1).count) <= granted)
    }
    relay.settle(.seconds(2))
    let records = subscriber.records(on: 1)
    #expect(records.count == min(Int(granted), published))
    #expect(records.map(\.offset) == (0..<records.count).map(UInt64.init))
    #expect(relay.links.count == 1)
  }

  @Test func aProducerIsGrantedWhatTheOwnerGrants() throws {
    let relay = try RelayWorld { $0.limits.producerWindow = 16 }
    let producer = relay.connect(to: 1)
    producer.send(PublishOpen(topic: "t", acknowledgement: .received, producer: 3), stream: 1)
    relay.settle()
    #expect(try producer.frames(on: 1).first?.decoded(PublishOpened.self).grantedThrough == 16)
    var published = 0
    for _ in 0..<10 {
      producer.publish(16, from: published, stream: 1)
      published += 16
      relay.settle()
      let demand = try producer.frames(on: 1).last { $0.header.type == .demand }?.decoded(Demand.self)
      #expect(demand?.grantedThrough == UInt64(published + 16))
      let ack = try producer.frames(on: 1).last { $0.header.type == .ack }?.decoded(Ack.self)
      #expect(ack?.through == UInt64(published))
    }
    producer.publish(17, from: published, stream: 1)
    relay.settle()
    #expect(producer.refusal(on: 1) == .demandExceeded)
    #expect(try #require(relay.nodes[0].broker.core.registry.find("t")).grantViolation == nil)
  }

  @Test func aSubscriberThatDoesNotReadDelaysNoOtherOfTheSameLink() throws {
    let relay = try RelayWorld()
    let producer = relay.connect(to: 0)
    let (slow, quick) = (relay.connect(to: 1), relay.connect(to: 1))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    for client in [slow, quick] {
      client.send(Subscribe(topic: "t", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    }
    relay.settle()
    slow.isPaused = true
    for round in 0..<40 {
      producer.publish(100, from: round * 100, size: 4_000, stream: 1)
      relay.settle(.milliseconds(20))
    }
    relay.settle(.seconds(1))
    #expect(quick.records(on: 1).count == 4_000)
    #expect(relay.links.count == 1)
    // 16 MB were published; a few hundred kilobytes wait for the slow subscriber.
    let received = slow.records(on: 1).count
    let waiting = try #require(
      relay.nodes[1].broker.contexts[0].connections.compactMap {
        $0.streams.session.object(1) as? RelayedSubscription
      }
      .map(\.waitingBytes).max())
    #expect(received < 400 && waiting < 1 << 20)
    slow.isPaused = false
    relay.settle(.seconds(2))
    #expect(slow.records(on: 1).map(\.offset) == (0..<4_000).map(UInt64.init))
  }

  @Test func recordsThatBecomeLongerOfASuddenDoNotPileUp() throws {
    let relay = try RelayWorld()
    let (producer, slow) = (relay.connect(to: 0), relay.connect(to: 1))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    slow.send(Subscribe(topic: "t", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    relay.settle()
    for round in 0..<20 {
      producer.publish(1_000, from: round * 1_000, stream: 1)
      relay.settle(.milliseconds(20))
    }
    slow.isPaused = true
    for round in 0..<60 {
      producer.publish(10, from: 20_000 + round * 10, size: 60_000, stream: 1)
      relay.settle(.milliseconds(20))
    }
    slow.isPaused = false
    relay.settle(.seconds(2))
    let offsets = slow.records(on: 1).map(\.offset)
    #expect(offsets == (0..<offsets.count).map(UInt64.init))
    #expect(slow.refusal(on: 1) == .topicMoved && offsets.count < 20_600)
    slow.send(
      Subscribe(topic: "t", start: .offset(UInt64(offsets.count)), grantedThrough: Credit.unlimited),
      stream: 1)
    relay.settle(.seconds(2))
    #expect(slow.records(on: 1).count == 20_600)
  }

  @Test func aClientWithShortFramesGetsBatchesThatFit() throws {
    let relay = try RelayWorld()
    let producer = relay.connect(to: 0)
    let client = relay.connect(to: 1, maximumFrame: UInt32(Limits.smallestFrame))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    relay.settle()
    producer.publish(100, from: 0, size: 4_000, stream: 1)
    relay.settle()
    client.send(Subscribe(topic: "t", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    relay.settle()
    #expect(client.records(on: 1).count == 100)
    #expect(client.frames.allSatisfy { $0.body.count <= Limits.smallestFrame })
  }
}
