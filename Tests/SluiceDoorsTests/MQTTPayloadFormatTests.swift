import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import TestSupport
import Testing

/// The payload properties that publishers set reach subscribers.
@Suite struct MQTTPayloadFormatTests {
  @Test(arguments: [nil, 0, 1] as [UInt32?], [false, true])
  func theFormatComesAsItWas(format: UInt32?, isStored: Bool) throws {
    let door = try DoorWorld([.mqtt], store: isStored ? MemoryStore() : nil)
    func add(_ properties: inout MQTTProperties) {
      if let format { properties.append(.payloadFormat, format) }
    }
    let subscriber = MQTTClient.connected(door, "s")
    subscriber.subscribe("t/+", .atLeastOnce)
    var will = MQTTConnect.Will(topic: "t/will", payload: [1], isRetained: true)
    add(&will.properties)
    let client = MQTTClient.connected(door, "c", will: will)
    client.publish("t/live", "x", .atLeastOnce, 1, add)
    client.publish("t/kept", "x", .atLeastOnce, 2, retained: true, add)
    client.settle()
    client.lose()
    subscriber.settle()
    let late = MQTTClient.connected(door, "l")
    late.subscribe("t/+", .atLeastOnce)
    late.settle()
    for (reader, topics) in [(subscriber, ["t/kept", "t/live", "t/will"]), (late, ["t/kept", "t/will"])] {
      let messages = reader.takeMessages()
      #expect(messages.map(\.topic).sorted() == topics)
      #expect(messages.allSatisfy { $0.properties.number(.payloadFormat) == format })
    }
  }

  @Test(arguments: [16, 100, 1000]) func packetsMayBeLimitedToFewBytes(bytes: Int) throws {
    #expect(MQTTLimits.packets.contains(bytes))
    var options = DoorOptions()
    options.mqtt.packet = bytes
    let door = try DoorWorld([.mqtt], options: options)
    // The client sends CONNECT before it knows the limit.
    let client = MQTTClient.connected(door, "a client with a long name")
    #expect(client.connack?.properties.number(.maximumPacketSize) == UInt32(bytes))
    client.publish("t", bytes: [UInt8](repeating: 1, count: bytes - 10), .atLeastOnce, 1)
    client.settle()
    #expect(client.take().last == "puback 1")
    client.publish("t", bytes: [UInt8](repeating: 1, count: bytes), .atLeastOnce, 2)
    client.settle()
    #expect(client.take().last == "disconnect \(MQTTReason.packetTooLarge.rawValue)")
  }
}
