import Glibc
import TestSupport
import Testing

/// Clients for Python, of MQTT and of WebSockets, against a broker.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct PythonClientTests {
  private let broker: BrokerProcess
  private let ports: [String: String]

  init() throws {
    broker = try BrokerProcess(
      "--listen", "mqtt://127.0.0.1:0", "--listen", "ws://127.0.0.1:0")
    var ports: [String: String] = [:]
    for address in broker.addresses {
      guard let mark = address.firstRange(of: "://") else { continue }
      ports[String(address[..<mark.lowerBound])] = String(address.split(separator: ":").last ?? "")
    }
    self.ports = ports
  }

  private func run(_ program: String) throws -> String {
    let text = program.replacing("MQTT_PORT", with: ports["mqtt"] ?? "").replacing(
      "WS_PORT", with: ports["ws"] ?? "")
    let folder = try #require(PythonClients.folder)
    let process = try ChildProcess(
      "/usr/bin/env", ["PYTHONPATH=\(folder)", "python3", "-c", text])
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process.standardOutput.text
  }

  /// Of MQTT 5 over TCP and over a WebSocket, at each QoS.
  @Test(arguments: [("tcp", "MQTT_PORT"), ("websockets", "WS_PORT")]) func paho(
    transport: String, port: String
  ) throws {
    let output = try run(
      """
      import threading
      import paho.mqtt.client as mqtt
      got = []
      ready, done = threading.Event(), threading.Event()
      def connect(name):
          client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5, transport="\(transport)")
          return client
      reader = connect("reader")
      def message(client, user, m):
          got.append((m.topic, m.payload.decode(), m.qos))
          if len(got) == 30: done.set()
      reader.on_message = message
      reader.on_connect = lambda c, u, f, r, p: c.subscribe("a/+", 2)
      reader.on_subscribe = lambda *a: ready.set()
      reader.connect("127.0.0.1", \(port))
      reader.loop_start()
      assert ready.wait(60)
      writer = connect("writer")
      writer.connect("127.0.0.1", \(port))
      writer.loop_start()
      infos = [writer.publish("a/%d" % (i % 3), "m%d" % i, qos=i % 3) for i in range(30)]
      for info in infos: info.wait_for_publish(60)
      assert done.wait(60), got
      print(sorted(got) == sorted(("a/%d" % (i % 3), "m%d" % i, i % 3) for i in range(30)))
      """)
    #expect(output == "True\n")
  }

  /// The native protocol's handshake in binary messages, with the module `websockets`.
  @Test func websockets() throws {
    let output = try run(
      """
      import asyncio, struct, websockets
      async def main():
          async with websockets.connect("ws://127.0.0.1:WS_PORT", subprotocols=["sluice.1"]) as socket:
              body = b"SLCE" + struct.pack("<HHQIIHBHH", 1, 1, 0, 1 << 20, 0, 0, 0, 0, 0)
              await socket.send(struct.pack("<IBBHI", len(body), 1, 0, 0, 0) + body)
              answer = await socket.recv()
              await socket.send([struct.pack("<IBBHI", 8, 3, 0, 0, 0), struct.pack("<Q", 77)])
              pong = await socket.recv()
              print(socket.subprotocol, answer[4], pong[4], struct.unpack("<Q", pong[12:])[0])
      asyncio.run(main())
      """)
    #expect(output == "sluice.1 2 4 77\n")
  }
}

/// Where `scripts/door-clients.sh` puts them.
enum PythonClients {
  static var folder: String? {
    // This file is Tests/IntegrationTests/Doors/PythonClientTests.swift.
    let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = "/\(repository)/.build/door-clients"
    return access("\(folder)/paho", R_OK) == 0 ? folder : nil
  }
}
