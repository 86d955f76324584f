import Testing

/// Python clients of MQTT, WebSocket and HTTP with a broker.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct PythonClientTests {
  private let stage: PythonStage

  init() throws { stage = try PythonStage() }

  /// MQTT 5 over TCP and over a WebSocket, at each QoS.
  @Test(arguments: [("tcp", "MQTT_PORT"), ("websockets", "WS_PORT")]) func paho(
    transport: String, port: String
  ) throws {
    let output = try stage.run(
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

  /// A client beyond a limit gets the reason in CONNACK, also over a WebSocket, after its handshake.
  @Test(arguments: [("tcp", "MQTT_PORT"), ("websockets", "WS_PORT")]) func pahoWithoutRoom(
    transport: String, port: String
  ) throws {
    let stage = try PythonStage(options: ["--max-connections-per-address", "1"])
    let output = try stage.run(
      """
      import threading
      import paho.mqtt.client as mqtt
      def answer(version):
          client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=version, transport="\(transport)")
          got, done = [], threading.Event()
          def connected(client, user, flags, reason, properties):
              got.append(str(reason))
              done.set()
          client.on_connect = connected
          client.connect("127.0.0.1", \(port))
          client.loop_start()
          done.wait(20)
          return client, got[0] if got else None
      first, served = answer(mqtt.MQTTv5)
      print(served)
      for version in (mqtt.MQTTv5, mqtt.MQTTv311):
          second, refused = answer(version)
          second.loop_stop()
          print(refused)
      first.disconnect()
      """)
    #expect(output == "Success\nQuota exceeded\nServer unavailable\n")
  }

  /// The native protocol's handshake in binary messages, with the module `websockets`.
  @Test func websockets() throws {
    let output = try stage.run(
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

  /// The module `websockets` compresses every message, and inflates received ones with the window that it requested.
  @Test(arguments: [9, 15]) func websocketsCompressed(bits: Int) throws {
    let stage = try PythonStage(options: ["--websocket-compression", "on"])
    let output = try stage.run(
      """
      import asyncio, json, websockets
      from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

      def length(count): return bytes([count]) if count < 128 else bytes([count & 127 | 128]) + length(count >> 7)

      def publish(payload): return b"\\x30" + length(len(payload) + 3) + b"\\x00\\x01t" + payload

      async def main():
          offer = ClientPerMessageDeflateFactory(server_max_window_bits=\(bits), client_max_window_bits=\(bits))
          async with websockets.connect("ws://127.0.0.1:WS_PORT", subprotocols=["mqtt"], extensions=[offer], max_size=None) as socket:
              extension, = socket.protocol.extensions
              print(extension.name, extension.remote_no_context_takeover, extension.local_no_context_takeover, extension.remote_max_window_bits)
              marks, inflate = [], extension.decode
              def decode(frame, **more):
                  marks.append(frame.rsv1)
                  return inflate(frame, **more)
              extension.decode = decode
              await socket.send(b"\\x10\\x0d\\x00\\x04MQTT\\x04\\x02\\x00\\x3c\\x00\\x01c")
              await socket.send([b"\\x82\\x06\\x00\\x01", b"\\x00\\x01t\\x00"])
              lines = "".join(json.dumps({"sensor": i % 7, "value": i * 31}) + "\\n" for i in range(20000)).encode()
              sent = b"".join(publish(payload) for payload in (lines, b"", lines[:1000], b"x"))
              await socket.send(sent)
              got = b""
              while len(got) < 9 + len(sent): got += await asyncio.wait_for(socket.recv(), 60)
              print(got == b"\\x20\\x02\\x00\\x00\\x90\\x03\\x00\\x01\\x00" + sent, any(marks))
      asyncio.run(main())
      """)
    #expect(output == "permessage-deflate True True \(bits)\nTrue True\n")
  }

  /// MQTT 5 with aiomqtt: each QoS with properties, a retained message, a shared subscription.
  @Test func aiomqtt() throws {
    let output = try stage.run(
      """
      import asyncio, aiomqtt
      from paho.mqtt.properties import Properties
      from paho.mqtt.packettypes import PacketTypes

      def client(name, **more):
          return aiomqtt.Client("127.0.0.1", MQTT_PORT, identifier=name, protocol=aiomqtt.ProtocolVersion.V5, **more)

      async def main():
          properties = Properties(PacketTypes.PUBLISH)
          properties.UserProperty = [("trace", "7"), ("trace", "8")]
          properties.ContentType = "text/plain"
          will = aiomqtt.Will("lights/dead", "gone", qos=1)
          async with client("reader") as reader:
              await reader.subscribe("lights/+", qos=2)
              async with client("writer") as writer:
                  for i in range(30):
                      await writer.publish("lights/%d" % (i % 3), "m%d" % i, qos=i % 3, properties=properties)
                  await writer.publish("lights/kept", "on", qos=1, retain=True)
              got = []
              async for m in reader.messages:
                  got.append((str(m.topic), m.payload.decode(), m.qos))
                  if m.payload != b"on": assert m.properties.UserProperty == [("trace", "7"), ("trace", "8")] and m.properties.ContentType == "text/plain"
                  if len(got) == 31: break
              print(sorted(got) == sorted([("lights/%d" % (i % 3), "m%d" % i, i % 3) for i in range(30)] + [("lights/kept", "on", 1)]))
          # A retained message comes to a later subscriber, marked as one.
          async with client("late") as late:
              await late.subscribe("lights/kept", qos=1)
              async for m in late.messages:
                  print(m.retain, m.payload.decode())
                  break
          # Two of a shared subscription have each message once.
          async with client("one") as one, client("two") as two, client("source") as source:
              for member in (one, two): await member.subscribe("$share/workers/jobs/#", qos=1)
              for i in range(20): await source.publish("jobs/%d" % i, str(i), qos=1)
              jobs = []
              async def work(member):
                  async for m in member.messages:
                      jobs.append(int(m.payload))
                      if len(jobs) == 20: done.set()
              done = asyncio.Event()
              tasks = [asyncio.create_task(work(member)) for member in (one, two)]
              await asyncio.wait_for(done.wait(), 60)
              for task in tasks: task.cancel()
              await asyncio.gather(*tasks, return_exceptions=True)
              print(sorted(jobs) == list(range(20)))
      asyncio.run(main())
      """)
    #expect(output == "True\nTrue on\nTrue\n")
  }

  /// MQTT 5 with gmqtt, an independent implementation: a subscription identifier, each property of a message, a will.
  @Test func gmqtt() throws {
    let output = try stage.run(
      """
      import asyncio, gmqtt
      from gmqtt.mqtt.constants import MQTTv50

      def client(name, **more):
          c = gmqtt.Client(name, **more)
          c.got, c.ready = asyncio.Queue(), asyncio.Event()
          async def message(client, topic, payload, qos, properties):
              client.got.put_nowait((topic, payload.decode(), qos, properties))
              return 0
          c.on_message = message
          c.on_subscribe = lambda client, mid, qos, properties: client.ready.set()
          return c

      async def main():
          will = gmqtt.Message("state/sensor", "dead", qos=1, will_delay_interval=0)
          reader = client("reader", clean_session=True)
          await reader.connect("127.0.0.1", MQTT_PORT, version=MQTTv50)
          reader.subscribe([gmqtt.Subscription("state/+", qos=2, no_local=True)], subscription_identifier=5)
          await asyncio.wait_for(reader.ready.wait(), 60)
          sensor = client("sensor", clean_session=True, will_message=will)
          sensor.set_config({"reconnect_retries": 0})
          await sensor.connect("127.0.0.1", MQTT_PORT, version=MQTTv50)
          for qos in range(3):
              sensor.publish("state/sensor", "at %d" % qos, qos=qos, user_property=("unit", "C"), message_expiry_interval=600,
                             response_topic="answers/x", correlation_data=b"c1", content_type="text/plain")
          for qos in range(3):
              topic, payload, had, p = await asyncio.wait_for(reader.got.get(), 60)
              print(topic, payload, had, p["user_property"], p["subscription_identifier"], p["response_topic"], p["correlation_data"], p["content_type"], p["message_expiry_interval"][0] <= 600)
          # Its connection breaks: the will is published.
          sensor._connection._transport.abort()

          print(*(await asyncio.wait_for(reader.got.get(), 60))[:3])
          await reader.disconnect()
      asyncio.run(main())
      """)
    let properties = "[('unit', 'C')] [5] ['answers/x'] [b'c1'] ['text/plain'] True"
    let messages = (0..<3).map { "state/sensor at \($0) \($0) \(properties)\n" }.joined()
    #expect(output == messages + "state/sensor dead 1\n")
  }

  /// HTTP with httpx over one connection: one record, many records, a repeated record that is published once, streams of lines and of events.
  @Test func httpx() throws {
    let output = try stage.run(
      """
      import asyncio, json, httpx

      async def main():
          async with httpx.AsyncClient(base_url="http://127.0.0.1:HTTP_PORT", timeout=60) as http:
              one = await http.post("/topics/orders", content=b"a book", headers={"Sluice-Key": "k1", "Sluice-Header-Unit": "pcs"})
              print(one.status_code, one.json()["lastOffset"])
              lines = "".join("line %d\\n" % i for i in range(5))
              many = await http.post("/topics/orders", content=lines, headers={"Content-Type": "application/x-ndjson"})
              print(many.status_code, many.json()["records"])
              for _ in range(2):
                  again = await http.post("/topics/once", content=b"only", headers={"Idempotency-Key": "9-0"})
                  print(again.status_code, again.json().get("isDuplicate", False))
              async with http.stream("GET", "/topics/orders", params={"from": "earliest", "count": 6}) as answer:
                  records = [json.loads(line) async for line in answer.aiter_lines()]
              print(records[0]["key"], records[0]["headers"], [r["payload"] for r in records])
              live = {"from": "last:2", "until": "live"}
              async with http.stream("GET", "/topics/orders", params=live, headers={"Accept": "text/event-stream"}) as answer:
                  ids = [line.removeprefix("id: ").split("-") async for line in answer.aiter_lines() if line.startswith("id:")]
              print([offset for _, offset in ids], len({epoch for epoch, _ in ids}))
              head = await http.head("/topics/orders", params=live)
              print(head.status_code, head.headers["content-type"], len(head.content))
              missing = await http.get("/topics/none", params={"until": "live"})
              print(missing.status_code)

      asyncio.run(main())
      """)
    #expect(
      output == """
        200 0
        200 5
        200 False
        200 True
        k1 [{'name': 'unit', 'value': 'pcs'}] ['a book', 'line 0', 'line 1', 'line 2', 'line 3', 'line 4']
        ['4', '5'] 1
        200 application/x-ndjson 0
        404

        """)
  }
}
