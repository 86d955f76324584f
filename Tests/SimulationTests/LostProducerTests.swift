import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Topics that fail when they have lost their producers, as seen by a client of the protocol.
@Suite struct LostProducerTests {
  private let small: SmallWorld
  private let client: ScriptedClient

  init() throws {
    small = try SmallWorld(brokerLoops: 1) { $0.limits.keepalive = 600_000 }
    client = small.connect(keepalive: 600_000)
  }

  private func create(_ patience: UInt32) {
    var settings = TopicSettings()
    settings.whenProducerLost = .fail(after: patience)
    _ = client.ask(TopicCreate(topic: "t", settings: settings), stream: 9, in: small)
  }

  private func publish(on stream: UInt32) {
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: stream)
  }

  /// Streams that open and close leave no timers behind: a loop's timers are limited, and each uses memory.
  @Test func aTopicHasOneTimer() throws {
    create(60_000)
    publish(on: 1)
    small.settle()
    client.send(Cancel(), stream: 1)
    for _ in 0..<300 {
      client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 2)
      publish(on: 1)
      small.settle(.milliseconds(2))
      client.send(Cancel(), stream: 1)
      client.send(Cancel(), stream: 2)
      small.settle(.milliseconds(2))
    }
    publish(on: 1)
    small.settle(.seconds(55))
    let before = small.world.loops[0].turns
    small.settle(.seconds(10))
    #expect(small.world.loops[0].turns - before < 100)
    #expect(small.broker.core.registry.find("t")?.epoch.condition == .open)
    // The remaining timer still fires.
    client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 2)
    client.send(Cancel(), stream: 1)
    small.settle(.seconds(59))
    #expect(small.broker.core.registry.find("t")?.epoch.condition == .open)
    small.settle(.seconds(2))
    #expect(try client.frames(on: 2).last?.decoded(Complete.self).ending.code == .producerLost)
  }

  /// The topic gets the setting after its producer has left.
  @Test func aStatementThatComesAfterTheLossCounts() throws {
    client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 2)
    publish(on: 1)
    small.settle()
    client.send(Cancel(), stream: 1)
    small.settle(.seconds(5))
    create(10_000)
    small.settle(.seconds(4))
    #expect(client.frames(on: 2).last?.header.type != .complete)
    small.settle(.seconds(2))
    #expect(try client.frames(on: 2).last?.decoded(Complete.self).ending.code == .producerLost)
  }
}

extension Complete.Ending {
  fileprivate var code: ErrorCode? {
    if case .failure(let code, _) = self { code } else { nil }
  }
}
