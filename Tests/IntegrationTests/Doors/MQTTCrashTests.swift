import Glibc
import TestSupport
import Testing

/// A broker that is repeatedly killed under the load of MQTT clients and restarted on the same directory. Every message acknowledged at QoS 1 is
/// delivered; every message published at QoS 2 is delivered once.
///
/// `SLUICE_CRASHES` sets the number of crashes.
@Suite(
  .onItsOwnThread,
  .enabled(if: PythonClients.folder != nil, "scripts/door-clients.sh hasn't installed the clients"))
struct MQTTCrashTests {
  private static var crashes: Int {
    getenv("SLUICE_CRASHES").flatMap { Int(String(cString: $0)) } ?? 5
  }

  /// Two paho clients, a publisher and a subscriber, which keep their sessions and count messages.
  private static let program = """
    import collections, sys, threading, time
    import paho.mqtt.client as mqtt
    from paho.mqtt.properties import Properties
    from paho.mqtt.packettypes import PacketTypes
    port, qos = int(sys.argv[1]), int(sys.argv[2])
    got, order, acknowledged, published = collections.Counter(), [], 0, 0
    lock, ready = threading.Lock(), threading.Event()
    class Client(mqtt.Client):
        # paho 2 publishes a message again that it has PUBREC for, when two attempts to connect have failed: against [MQTT-4.4.0-1].
        def _messages_reconnect_reset_out(self):
            released = [m for m in self._out_messages.values() if m.state == mqtt.mqtt_ms_resend_pubrel]
            super()._messages_reconnect_reset_out()
            for m in released: m.state = mqtt.mqtt_ms_resend_pubrel
    def make(name):
        client = Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
        client.reconnect_delay_set(0.05, 0.2)
        client.max_inflight_messages_set(16)
        client.max_queued_messages_set(0)
        return client
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 3600
    def begin(client):
        while True:
            try:
                client.connect("127.0.0.1", port, clean_start=mqtt.MQTT_CLEAN_START_FIRST_ONLY, properties=properties)
                break
            except OSError: time.sleep(0.05)
        client.loop_start()
    def message(client, user, m):
        with lock: got[int(m.payload)] += 1
    reader = make("reader")
    reader.on_message = message
    absent = [0]
    def connected(client, user, flags, reason, p):
        if ready.is_set():
            if not flags.session_present: absent[0] += 1
        else: client.subscribe("load/+", qos)
    reader.on_connect = connected
    reader.on_subscribe = lambda *a: ready.set()
    begin(reader)
    assert ready.wait(60)
    writer = make("writer")
    sent = collections.deque()
    def done(client, user, mid, reason, p):
        global acknowledged
        acknowledged += 1
        if acknowledged % 10 == 0: print("at", acknowledged, flush=True)
    writer.on_publish = done
    begin(writer)
    print("ready", flush=True)
    stop = threading.Event()
    def halt():
        sys.stdin.read()
        stop.set()
    threading.Thread(target=halt, daemon=True).start()
    while not stop.is_set():
        if published - acknowledged < 100:
            writer.publish("load/%d" % (published % 3), str(published), qos)
            published += 1
        else: time.sleep(0.001)
    limit = time.time() + 120
    while time.time() < limit and (acknowledged < published or len(got) < published): time.sleep(0.05)
    time.sleep(1)
    lost = published - len(got)
    twice = sum(1 for n in got.values() if n > 1)
    print("published", published, "acknowledged", acknowledged, "lost", lost, "twice", twice, "absent", absent[0], flush=True)
    """

  @Test(arguments: [1, 2]) func whatWasPublishedComes(qos: Int) throws {
    var random = SeededRandom.printed()
    let directory = try TemporaryDirectory()
    let (data, configuration) = (directory.file("data"), directory.file("sluiced.toml"))
    defer { removeStore(data) }
    try writeFile(configuration, Array("[[rule]]\npattern = \"load.*\"\nstorage = \"durable\"\n".utf8))
    func start(_ address: String) throws -> BrokerProcess {
      try BrokerProcess("--listen", address, "--data", data, "--config", configuration)
    }
    var broker = try start("mqtt://127.0.0.1:0")
    let address = try #require(broker.addresses.first { $0.hasPrefix("mqtt://") })
    let port = String(address.split(separator: ":").last ?? "")
    let folder = try #require(PythonClients.folder)
    let clients = try ChildProcess(
      "/usr/bin/env", ["PYTHONPATH=\(folder)", "python3", "-c", Self.program, port, "\(qos)"], input: .open)
    _ = try clients.standardOutput.line(startingWith: "ready")
    for _ in 1...Self.crashes {
      // Kill the broker after some hundred messages, or none.
      let target = clients.standardOutput.lines.count + Int.random(in: 0...40, using: &random)
      try eventually("messages are acknowledged") { clients.standardOutput.lines.count >= target }
      broker.process.signal(SIGKILL)
      try broker.process.waitForExit()
      broker = try start(address)
    }
    clients.closeInput()
    #expect(try clients.waitForExit(within: 240) == .code(0), "\(clients.messages)")
    let line = try #require(clients.standardOutput.lines.last)
    print("QoS \(qos), \(Self.crashes) crashes:", line)
    let words = line.split(separator: " ")
    #expect(words.count == 10 && words[1] == words[3], "\(line)")
    #expect(line.contains("lost 0 "), "\(line)")
    if qos == 2 { #expect(line.contains("twice 0 "), "\(line)") }
    #expect(line.hasSuffix("absent 0"), "\(line)")
  }
}
