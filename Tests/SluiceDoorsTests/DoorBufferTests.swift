import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceSimulation
import Testing

@testable import SluiceDoors

/// Bytes that wait in gateways count towards the bytes that the broker's connections buffer.
@Suite struct DoorBufferTests {
  private static let front = "POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"

  private func post(_ bytes: Int, _ door: DoorWorld) -> ByteClient {
    let client = door.connect(1)
    client.send(Self.front + String(repeating: "x", count: bytes))
    door.settle(.seconds(1))
    return client
  }

  @Test func theBodyOfARequestIsCountedWhileItComes() throws {
    let door = try DoorWorld([.http])
    let client = post(600_000, door)
    #expect(door.broker.metrics[.bufferedBytes] >= 600_000)
    client.send(String(repeating: "x", count: 400_000))
    door.settle(.seconds(1))
    #expect(client.text.contains("200 OK"))
    #expect(door.broker.metrics[.bufferedBytes] == 0)
  }

  @Test func theConnectionWithTheLongestOfSeveralBodiesIsClosed() throws {
    let door = try DoorWorld([.http]) { $0.limits.buffered = 1 << 20 }
    let clients = [300_000, 500_000, 400_000].map { post($0, door) }
    #expect(door.broker.metrics[.closedForBuffering] == 1)
    #expect(clients.map(\.hasEnded) == [false, true, false])
    for client in clients { client.abort() }
    door.settle(.seconds(1))
    #expect(door.broker.metrics[.bufferedBytes] == 0)
  }

  @Test func messagesForAClientOfMQTTThatDoesNotReadAreCounted() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atMostOnce)
    client.bytes.isPaused = true
    let native = try NativeClient(door)
    native.publishMuch("t")
    native.settle(.seconds(2))
    #expect(door.broker.metrics[.bufferedBytes] >= 200_000)
    client.bytes.isPaused = false
    client.settle(.seconds(2))
    #expect(client.take().count >= 400)
    #expect(door.broker.metrics[.bufferedBytes] == 0)
  }

  /// Once the client accepts no more bytes, its gateway checks whether the client is alive.
  @Test func aClientThatReadsNothingIsGivenUpWithoutAWriteDeadlineToo() throws {
    let door = try DoorWorld([.mqtt]) { ($0.limits.keepalive, $0.limits.write) = (8_000, .zero) }
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atMostOnce)
    door.settle(.seconds(20))
    client.bytes.isPaused = true
    let publisher = MQTTClient.connected(door, "p")
    for _ in 0..<30 { publisher.publish("t", String(repeating: "x", count: 20_000)) }
    publisher.settle(.seconds(6))
    #expect(door.broker.metrics[.keepaliveTimeouts] == 0)
    publisher.settle(.seconds(6))
    #expect(door.broker.metrics[.keepaliveTimeouts] == 1)
    client.bytes.isPaused = false
    client.settle(.seconds(1))
    #expect(client.bytes.hasEnded)
    #expect(!publisher.bytes.hasEnded)
  }
}
