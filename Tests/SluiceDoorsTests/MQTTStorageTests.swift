import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceWire
import TestSupport
import Testing

/// Messages while the broker's store fails: none whose outcome is unknown is answered, and those that weren't tried wait.
@Suite struct MQTTStorageTests {
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func aStoreThatFailsLosesAndDoublesNothing(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let store = FailingStore()
    let door = try DoorWorld(seed: seed, [.mqtt], store: store) { $0.topicDefaults.sync = .always }
    let qos = seed % 2 == 0 ? MQTTQoS.exactlyOnce : .atLeastOnce
    var publisher = PersistentClient(door, "p", qos)
    var subscriber = PersistentClient(door, "s", qos)
    subscriber.client.subscribe("t/#", qos)
    #expect(subscriber.client.await("suback"))
    for _ in 0..<5 {
      for _ in 0..<5 { publisher.publishNext() }
      door.settle(.microseconds(.random(in: 0..<6000, using: &random)))
      store.fail(seed % 4 < 2 ? .full : .failed)
      for _ in 0..<5 { publisher.publishNext() }
      for _ in 0..<100 {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
      }
      store.fail(nil)
      for _ in 0..<100 {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
        if publisher.client.bytes.hasEnded { publisher.reconnect() }
        if subscriber.client.bytes.hasEnded { subscriber.reconnect() }
      }
    }
    for _ in 0..<100 { subscriber.run(.milliseconds(100)) }
    #expect(publisher.isIdle)
    let texts = subscriber.received
    #expect(Set(texts) == Set((0..<publisher.published).map { "m\($0)" }))
    if qos == .exactlyOnce { #expect(texts.count == publisher.published) }
  }

  /// The client's publication to a topic is closed to make room for another one, and opened again. No message is lost.
  @Test func aClientWithManyTopicsAtATimeIsServed() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore()) { $0.topicDefaults.sync = .always }
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    client.sendTogether {
      for number in 0..<200 { client.publish("t/\(number % 40)", "x", .atLeastOnce, UInt16(number + 1)) }
    }
    for _ in 0..<10 { client.settle() }
    let answers = client.take().filter { $0.hasPrefix("puback") }
    #expect(Set(answers) == Set((1...200).map { "puback \($0)" }))
  }
}
