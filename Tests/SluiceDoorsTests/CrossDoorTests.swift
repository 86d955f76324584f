import SluiceCommand
import SluiceIO
import SluiceMQTT
import SluiceWire
import Testing

@testable import SluiceDoors

/// A record that is published through one gateway is shown correctly by all others.
@Suite struct CrossDoorTests {
  enum Way: CaseIterable {
    case native, http, webSocket, mqtt
  }

  private static let samples: [DoorRecord] = [
    DoorRecord(payload: Array("plain".utf8)),
    DoorRecord(payload: []),
    DoorRecord(key: "k 1", payload: Array("with a key".utf8)),
    DoorRecord(
      key: "key-2", headers: ["color": "red", "trace-id": "a=1; b"], contentType: "text/plain",
      payload: Array("Grüße ✓ \"quoted\" \\ \n\t".utf8)),
    DoorRecord(headers: ["empty": ""], contentType: "application/octet-stream-2", payload: Array(0...255)),
    DoorRecord(contentType: "application/json", payload: Array("{\"a\":[1,2]}".utf8)),
    DoorRecord(key: "big", payload: [UInt8](repeating: 0xC3, count: 100_000)),
  ]

  private static func writer(_ way: Way, _ door: DoorWorld, _ topic: String) -> any StoryWriter {
    switch way {
    case .native: NativeStoryWriter(door, at: 0, wraps: false, topic: topic, producer: 1)
    case .http: HTTPStoryWriter(door, at: 1, topic: topic, name: "w")
    case .webSocket: NativeStoryWriter(door, at: 2, wraps: true, topic: topic, producer: 2)
    case .mqtt: MQTTStoryWriter(door, at: 3, topic: topic, id: "w")
    }
  }

  private static func reader(_ way: Way, _ door: DoorWorld, _ topic: String) -> any StoryReader {
    switch way {
    case .native: NativeStoryReader(door, at: 0, wraps: false, topic: topic)
    case .http: HTTPStoryReader(door, at: 1, topic: topic)
    case .webSocket: NativeStoryReader(door, at: 2, wraps: true, topic: topic)
    case .mqtt: MQTTStoryReader(door, at: 3, topic: topic, id: "r")
    }
  }

  @Test(arguments: Way.allCases, Way.allCases) func recordsLookTheSame(from source: Way, at destination: Way)
    throws
  {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let writer = Self.writer(source, door, "a.b")
    for sample in Self.samples {
      writer.publish(sample)
      for _ in 0..<3 {
        door.settle()
        writer.look()
      }
      try #require(writer.isIdle, "\(sample) wasn't taken")
    }
    let reader = Self.reader(destination, door, "a.b")
    for _ in 0..<5 {
      door.settle()
      reader.look()
    }
    #expect(reader.records == Self.samples)
  }

  @Test(arguments: Way.allCases) func timesAreTheSame(source: Way) throws {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let writer = Self.writer(source, door, "a.b")
    writer.publish(Self.samples[0])
    for _ in 0..<3 {
      door.settle()
      writer.look()
    }
    let native = NativeStoryReader(door, at: 0, wraps: false, topic: "a.b")
    let socket = NativeStoryReader(door, at: 2, wraps: true, topic: "a.b")
    let http = HTTPStoryReader(door, at: 1, topic: "a.b")
    door.settle()
    for reader in [native, socket, http] as [any StoryReader] { reader.look() }
    let time = try #require(native.times.first)
    #expect(socket.times == [time])
    #expect(http.lines.first?.contains("\"time\":\"\(WallTime.format(time))\"") == true, "\(http.lines)")
  }

  /// A gateway may store a header for its own use in a record. Another gateway, which writes headers as text, doesn't show it.
  @Test func headersOfTheDoorAreItsOwn() throws {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let client = MQTTClient.connected(door, "c", at: 3)
    client.subscribe("a/+", noLocal: true)
    client.publish("a/b", "x", .atLeastOnce, 1)
    client.settle()
    let http = HTTPStoryReader(door, at: 1, topic: "a.b")
    http.look()
    #expect(http.records == [DoorRecord(payload: Array("x".utf8))])
    let other = MQTTClient.connected(door, "d", at: 3)
    other.subscribe("a/b") { $0.append(user: "sluice-from", "earliest") }
    other.settle()
    #expect(other.take().last == "publish a/b \"x\" 0")
  }
}
