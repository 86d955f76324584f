import Glibc
import TestSupport
import Testing

/// Gateway clients whose machines vanish, and that use no keepalive, so that the protocols alone wouldn't detect it.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"),
  .enabled(if: PulledCable.isPossible, "needs to be root, and network namespaces"))
struct VanishedClientTests {
  @Test func tcpFindsOutThatAClientIsGone() throws {
    let cable = try PulledCable.laid()
    let broker = try BrokerProcess(
      "--listen", "mqtt://\(cable.near):0", "--listen", "http://\(cable.near):0", "--allow-unauthenticated",
      "--tcp-keepalive", "1s")
    func address(_ scheme: String) throws -> String {
      try #require(broker.addresses.first { $0.hasPrefix(scheme) })
    }
    func start(_ program: [String]) throws -> ChildProcess {
      let command = cable.command + program
      return try ChildProcess(command[0], Array(command.dropFirst()))
    }
    // MQTT 3.1.1 with keep alive 0, and an HTTP reader of lines.
    let port = String(try address("mqtt").split(separator: ":").last ?? "")
    let folder = try #require(PythonClients.folder)
    let program = """
      import paho.mqtt.client as mqtt
      client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "c", protocol=mqtt.MQTTv311)
      client.on_connect = lambda *a: client.subscribe("t", 1)
      client.on_subscribe = lambda *a: print("subscribed", flush=True)
      client.connect("\(cable.near)", \(port), keepalive=0)
      client.loop_forever()
      """
    try broker.client().publishAll(["here"], to: "t")
    let reader = try start(["/usr/bin/curl", "-sN", "\(try address("http"))/topics/t"])
    let client = try start(["/usr/bin/env", "PYTHONPATH=\(folder)", "python3", "-c", program])
    _ = try client.standardOutput.line(startingWith: "subscribed")
    // Both are connected, and stay so while they respond.
    try eventually("the reader has a record") { reader.standardOutput.text.contains("here") }
    pause(5)
    #expect(try broker.metric("connections") == 2, "\(reader.messages) \(client.messages)")
    try cable.pull()
    try eventually("both are gone") { try broker.metric("connections") == 0 }
    withExtendedLifetime((reader, client)) {}
  }
}
