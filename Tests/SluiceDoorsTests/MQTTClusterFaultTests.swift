import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

/// Sessions at the nodes of a cluster whose parts don't reach each other.
@Suite struct MQTTClusterFaultTests {
  // MARK: A node without the engine

  /// A message whose outcome isn't known is never answered.
  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func aNodeWithoutTheEngineAnswersNothingThatItDoesNotKnow(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let nodes = try DoorNodes(seed: seed)
    let qos = seed % 2 == 0 ? MQTTQoS.exactlyOnce : .atLeastOnce
    let far = try #require(nodes.owner(of: "t.0"))
    var subscriber = PersistentClient(nodes, "s", qos, at: (far + 1) % 3)
    var publisher = PersistentClient(nodes, "p", qos, at: far)
    subscriber.client.subscribe("t/#", qos)
    #expect(subscriber.client.await("suback"))
    for round in 0..<3 {
      for _ in 0..<10 { publisher.publishNext() }
      nodes.settle(.microseconds(.random(in: 0..<6000, using: &random)))
      nodes.cutEngine(from: far)
      for _ in 0..<3 { publisher.publishNext() }
      for _ in 0..<Int.random(in: 1...200, using: &random) {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
      }
      nodes.healEngine(of: far)
      for _ in 0..<200 { publisher.run(.milliseconds(50)) }
      if publisher.client.bytes.hasEnded { publisher.reconnect(at: (far + round) % 3) }
      for _ in 0..<100 {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
      }
    }
    #expect(publisher.isIdle)
    let texts = subscriber.received
    #expect(Set(texts) == Set((0..<publisher.published).map { "m\($0)" }))
    if qos == .exactlyOnce { #expect(texts.count == publisher.published) }
  }
}
