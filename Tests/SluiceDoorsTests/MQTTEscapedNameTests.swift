import SluiceIO
import SluiceMQTT
import SluiceWire
import Testing

@testable import SluiceDoors

/// Topic names of devices that the broker must escape.
@Suite("MQTT names at the door")
struct MQTTEscapedNameTests {
  private let door: DoorWorld

  init() throws { door = try DoorWorld([.mqtt]) }

  /// In the form of Zigbee2MQTT, Sparkplug B, firmware, Wiren Board, Frigate, Telegraf and Node-RED.
  private static let names = [
    "zigbee2mqtt/Living Room", "spBv1.0/group/NBIRTH/node", "fw/1.2.3", "/devices/wb-mr6c/controls/K1/on",
    "frigate/front*door/person", "telegraf/host.example.org/cpu", "node-red/flow//end", "a/b/",
    "homeassistant/>",
    "50%/done", "escaped/a%20b", "caf\u{e9}/cafe\u{301}",
  ]

  @Test func theyComeAsTheyWereSentAndSoDoRetainedOnes() {
    let sender = MQTTClient.connected(door, "sender")
    let live = MQTTClient.connected(door, "live")
    live.subscribe("#", .atMostOnce, 1)
    _ = live.take()
    for (index, name) in Self.names.enumerated() {
      sender.publish(name, "x", .atLeastOnce, UInt16(index + 1), retained: true)
      sender.settle()
    }
    live.settle()
    #expect(live.take().map(Self.name) == Self.names)
    let late = MQTTClient.connected(door, "late")
    late.subscribe("#", .atMostOnce, 1)
    late.settle()
    #expect(Set(late.take().compactMap(Self.name)) == Set(Self.names))
    for name in Self.names {
      let one = MQTTClient.connected(door, "one")
      one.subscribe(name, .atMostOnce, 1)
      one.settle()
      #expect(one.take().compactMap(Self.name) == [name])
    }
  }

  @Test(arguments: ["#", "+/b"])
  func aWildcardAtTheStartSeesNoNameWithADollarSign(filter: String) {
    let client = MQTTClient.connected(door, "c")
    client.subscribe(filter, .atMostOnce, 1)
    client.subscribe("$aws/#", .atMostOnce, 2)
    _ = client.take()
    client.publish("$aws/b", "own", .atMostOnce, 0)
    client.publish("a/b", "x", .atMostOnce, 0)
    client.settle()
    #expect(client.take().map(Self.name).sorted { $0 ?? "" < $1 ?? "" } == ["$aws/b", "a/b"])
  }

  @Test func aNameOfTheBrokerHasOneOfMQTT() throws {
    let client = MQTTClient.connected(door, "c")
    client.subscribe("#", .atMostOnce, 1)
    _ = client.take()
    let native = try NativeClient(door)
    native.publish("a/b.c+d", ["x"], stream: 1)
    client.settle()
    #expect(client.take().map(Self.name) == ["a%2Fb/c%2Bd"])
    client.publish("a%2Fb/c%2Bd", "back", .atLeastOnce, 1)
    native.send(Subscribe(topic: "a/b.c+d", start: .replay, grantedThrough: 10), stream: 3)
    client.settle()
    #expect(native.records(stream: 3).last?.payload == Array("back".utf8))
  }

  /// The name in a line of the test's client: `publish NAME "PAYLOAD" QOS`.
  private static func name(_ line: String) -> String? {
    guard line.hasPrefix("publish "), let end = line.firstRange(of: " \"") else { return nil }
    return String(line[line.index(line.startIndex, offsetBy: 8)..<end.lowerBound])
  }
}
