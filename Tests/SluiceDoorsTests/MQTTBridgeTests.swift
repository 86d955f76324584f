import SluiceIO
import SluiceMQTT
import TestSupport
import Testing

/// A bridge of another broker, which identifies itself by its protocol level.
@Suite struct MQTTBridgeTests {
  @Test func itsMessagesDoNotComeBackAndRetainFlagsStay() throws {
    let door = try DoorWorld([.mqtt])
    let bridge = MQTTClient(door, .v311)
    var connect = MQTTConnect(.v311, clientID: "bridge")
    connect.isBridge = true
    bridge.send(.connect(connect))
    bridge.settle()
    // It is idle in between, and remains a bridge.
    for filter in ["a/#", "b/#"] {
      bridge.subscribe(filter, .atLeastOnce)
      bridge.settle(.seconds(2))
    }
    #expect(bridge.take() == ["connack 0", "suback 1 [1]", "suback 1 [1]"])
    let other = MQTTClient.connected(door, "o")
    for level in ["a", "b"] {
      bridge.publish("\(level)/1", "of the bridge", .atLeastOnce, 1)
      bridge.settle()
      other.publish("\(level)/1", "plain", .atLeastOnce, 1)
      other.publish("\(level)/1", "kept", .atLeastOnce, 2, retained: true)
      other.settle()
      bridge.settle()
      #expect(
        bridge.take() == [
          "puback 1", "publish \(level)/1 \"plain\" 1", "publish \(level)/1 \"kept\" 1 retained",
        ])
    }
  }
}
