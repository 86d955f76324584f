import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// What clients of doors may do to the broker: bounded, answered, and gone with them.
@Suite struct HostileClientTests {
  @Test func willsOfDeadClientsByTheThousandArePublishedAndLeaveNothing() throws {
    let door = try DoorWorld([.mqtt])
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone/+", .atMostOnce)
    _ = watcher.take()
    let will = MQTTConnect.Will(topic: "gone/all", payload: Array("dead".utf8), qos: .atLeastOnce)
    for _ in 0..<10 {
      let clients = (0..<100).map { _ in MQTTClient(door) }
      for client in clients {
        client.send(.connect(MQTTConnect(.v5, clientID: "", will: will)))
      }
      door.settle()
      for client in clients { client.bytes.abort() }
      door.settle(.milliseconds(50))
    }
    watcher.settle(.seconds(1))
    #expect(watcher.take().count == 1000)
    #expect(door.broker.metrics[.connections] == 1)
    #expect(door.broker.metrics[.publications] == 0)
  }

  @Test func whatAClientPublishedBeforeItLeftIsPublishedThoughItHasReadNothing() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atMostOnce)
    client.bytes.isPaused = true
    let native = try NativeClient(door)
    native.publishMuch("t")
    client.publish("last", "words")
    client.bytes.close()
    native.settle(.seconds(2))
    #expect(native.show("last").summary.nextOffset == 1)
    #expect(door.broker.metrics[.connections] == 1)
  }

  @Test func subscriptionsBeyondTheLimitAreRefused() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    for round in 0..<12 {
      let items = (0..<100).map {
        MQTTSubscribe.Item("t/\(round)/\($0)", MQTTSubscriptionOptions(.atLeastOnce))
      }
      client.send(.subscribe(MQTTSubscribe(UInt16(round + 1), items)))
      client.settle()
    }
    let answers = client.take().joined()
    #expect(answers.split(separator: "151").count - 1 == 1200 - 1024)
    client.lose()
    #expect(door.broker.metrics[.connections] == 0)
  }

  /// A body in chunks is the same wherever the network cuts it, and what isn't one is refused, never read beyond its end.
  @Test(arguments: 1...200 as ClosedRange<UInt64>) func bodiesAreReadWhereverTheyAreCut(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    var body: [UInt8] = []
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 0...5, using: &random) {
      let chunk = (0..<Int.random(in: 1...40, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      body += chunk
      bytes += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [0x0D, 0x0A]
    }
    bytes += Array("0\r\n\r\n".utf8)
    let rest = Array("GET".utf8)
    if seed % 2 == 0 {
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
    }

    func read(cuts: () -> Int) -> (body: [UInt8], taken: Int, isDone: Bool)? {
      var reader = HTTPBodyReader(length: nil, limit: 1000)
      var left = (bytes + rest)[...]
      var taken = 0
      while !left.isEmpty, !reader.isDone {
        let part = left.prefix(cuts())
        guard let count = try? reader.take(part) else { return nil }
        taken += count
        left = left.dropFirst(count)
        if count < part.count { break }
      }
      return (reader.body, taken, reader.isDone)
    }
    let whole = read { .max }
    let single = read { 1 }
    let cut = read { Int.random(in: 1...20, using: &random) }
    #expect(whole?.body == single?.body && whole?.taken == single?.taken && whole?.isDone == single?.isDone)
    #expect(whole?.body == cut?.body && whole?.taken == cut?.taken)
    if seed % 2 == 1 {
      #expect(whole?.body == body)
      #expect(whole?.taken == bytes.count)
      #expect(whole?.isDone == true)
    }
  }
}
