import TestSupport
import Testing

/// Log lines about denied requests of MQTT clients.
@Suite(.onItsOwnThread) struct DoorLogTests {
  private let broker: BrokerProcess
  private let address: String

  init() throws {
    broker = try BrokerProcess(
      options: ["--listen", "mqtt://127.0.0.1:0", "--admin", "\(Loopback.freshHost()):0"])
    address = String(try #require(broker.addresses.last).dropFirst("mqtt://".count))
  }

  private func lines(_ texts: String...) -> Int {
    broker.process.standardError.lines.count { line in texts.allSatisfy { line.contains($0) } }
  }

  @Test func refusedSubscriptionsAreLoggedButNotEachOfMany() throws {
    let client = try RawMQTT(address)
    try client.send(RawMQTT.connect("kitchen"))
    _ = try client.receive()
    try client.send(RawMQTT.subscribe(1, ["a/#/b", "fine"]))
    #expect(try client.receive().body.suffix(2) == [0x8F, 1])
    let line = "an MQTT subscription was refused"
    try eventually("the log says so") {
      lines(line, "client=kitchen", "filter=a/#/b", "filters=1", "code=0x8F", "cause=") == 1
    }
    // Some of many are logged, and then the number of those that weren't.
    for number in 2...300 as ClosedRange<UInt16> {
      try client.send(RawMQTT.subscribe(number, ["a/#/b"]))
      #expect(try client.receive().body.last == 0x8F)
    }
    #expect(lines(line) < 100, "\(lines(line)) lines")
    pause(1.1)
    try client.send(RawMQTT.subscribe(301, ["a/#/b"]))
    try eventually("the log says how many lines it has left out") {
      lines("lines about MQTT sessions, subscriptions, topics and wills were left out") > 0
    }
  }

  @Test func topicsWithoutANameAreCountedAndLoggedOnceForEachClient() throws {
    let topic = String(repeating: "a", count: 10_000)
    for _ in 0..<2 {
      let client = try RawMQTT(address)
      try client.send(RawMQTT.connect("kitchen"))
      _ = try client.receive()
      for number in 1...3 as ClosedRange<UInt16> {
        try client.send(RawMQTT.publish(number, topic, [1]))
        #expect(try client.receive().body[2] == 0x90)
      }
    }
    try eventually("the log says so") {
      lines("can't be a topic of the broker", "client=kitchen", "topic=\"aaa") == 1
    }
    let metrics = try RawHTTP.get(try #require(broker.adminAddress), "/metrics").text
    #expect(metrics.split(separator: "\n").contains("sluice_broker_unnamed_messages_total 6"))
  }

  @Test func aPacketThatCannotBeReadIsLoggedWithItsReason() throws {
    let client = try RawMQTT(address)
    // CONNECT with a reserved flag.
    try client.send(RawMQTT.packet(0x10, [0, 4] + Array("MQTT".utf8) + [5, 3, 0, 0x3C, 0, 0, 0]))
    let connack = try client.receive()
    #expect(connack.type == 0x20 && connack.body[1] == 0x81)
    try eventually("the log says so") { lines("a connection was closed", "reserved", "malformed-frame") == 1 }
    let other = try RawMQTT(address)
    try other.send(RawMQTT.connect("kitchen"))
    _ = try other.receive()
    // A filter without options.
    try other.send(RawMQTT.packet(0x82, [0, 1, 0, 0, 1, 0x61]))
    let disconnect = try other.receive()
    #expect(disconnect.type == 0xE0 && disconnect.body[0] == 0x81)
    try eventually("the log says so, and of which client") {
      lines("a connection was closed", "client=kitchen", "malformed-frame") == 1
    }
  }
}
