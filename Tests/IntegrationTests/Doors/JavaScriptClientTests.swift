import Glibc
import TestSupport
import Testing

/// MQTT.js, from Debian's package node-mqtt, with a broker: each QoS, a retained message and a will, with both versions of MQTT, over TCP and WebSocket.
@Suite(
  .onItsOwnThread,
  .enabled(if: MQTTJS.isInstalled, "node-mqtt isn't installed: scripts/bootstrap.sh --tests"))
struct JavaScriptClientTests {
  @Test(arguments: ["mqtt", "ws"], [4, 5]) func mqttJS(scheme: String, version: Int) throws {
    let broker = try BrokerProcess("--listen", "\(scheme)://127.0.0.1:0")
    let address = try #require(broker.addresses.first { $0.hasPrefix(scheme) })
    let program = Self.program.replacing("URL", with: address).replacing("VERSION", with: "\(version)")
    let process = try ChildProcess(
      "/usr/bin/env", ["NODE_PATH=\(MQTTJS.modules)", MQTTJS.node, "-e", program])
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardOutput.text == "true\njs/kept on true\n")
  }

  private static let program = #"""
    const mqtt = require("mqtt")
    const url = "URL", version = VERSION
    const open = (name, more) => mqtt.connect(url, { clientId: name, protocolVersion: version, reconnectPeriod: 0, ...more })
    const got = []
    const reader = open("reader")
    reader.on("error", e => { console.log(e.message); process.exit(1) })
    reader.on("message", (topic, payload, packet) => {
      got.push(`${topic} ${payload} ${packet.qos}`)
      if (payload.toString() === "dead") return finish()
      if (got.length === 31) writer.stream.destroy()
    })
    let writer
    reader.on("connect", () => reader.subscribe("js/#", { qos: 2 }, () => {
      writer = open("writer", { will: { topic: "js/will", payload: "dead", qos: 1 } })
      writer.on("connect", () => {
        for (let i = 0; i < 30; i++) writer.publish(`js/${i % 3}`, `m${i}`, { qos: i % 3 })
        writer.publish("js/kept", "on", { qos: 1, retain: true })
      })
    }))
    function finish() {
      const want = [...Array(30).keys()].map(i => `js/${i % 3} m${i} ${i % 3}`).concat(["js/kept on 1", "js/will dead 1"])
      console.log(JSON.stringify(got.sort()) === JSON.stringify(want.sort()))
      const late = open("late")
      late.on("message", (topic, payload, packet) => { console.log(topic, `${payload}`, packet.retain); process.exit(0) })
      late.on("connect", () => late.subscribe("js/kept", { qos: 1 }))
    }
    """#
}

private enum MQTTJS {
  static let node = "/usr/bin/node"
  static let modules = "/usr/share/nodejs"
  static var isInstalled: Bool { access(node, X_OK) == 0 && access("\(modules)/mqtt", R_OK) == 0 }
}
