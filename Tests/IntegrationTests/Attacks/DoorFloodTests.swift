import SluiceWire
import TestSupport
import Testing

/// Gateway clients that exceed the limits.
@Suite(.onItsOwnThread) struct DoorFloodTests {
  private func scene(_ name: String, _ door: String, _ options: String...) throws -> (AttackScene, String) {
    let scene = try AttackScene(name, options: ["--listen", "\(door)://127.0.0.1:0"] + options)
    return (scene, String(try #require(scene.broker.addresses.last).dropFirst("\(door)://".count)))
  }

  /// Writes until the broker stops reading. Returns the first line of its response.
  private func pour(_ bytes: [UInt8], times: Int, into socket: RawSocket) throws -> String {
    let deadline = Deadline(in: Deadline.patience)
    var (answer, left, sent) = ([UInt8](), times, 0)
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      do {
        if let count = try chunk.withUnsafeMutableBytes({ try socket.read(into: $0) }) {
          answer += chunk[..<count]
          continue
        }
        if left > 0 { sent += try bytes[sent...].withUnsafeBytes { try socket.write($0) } }
        if sent == bytes.count { (left, sent) = (left - 1, 0) }
        try require(socket.wait(toWrite: left > 0, until: deadline), "the broker answers nothing")
      } catch is RawSocket.Closed {
        return String(decoding: answer.prefix { $0 != 13 }, as: UTF8.self)
      }
    }
  }

  @Test(arguments: ["http", "ws"]) func giantHeadersAreRefused(door: String) throws {
    let (scene, address) = try scene("giant headers at the door of \(door)", door)
    let giant = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
    let lines = Array((0..<10_000).map { "X-\($0): y\r\n" }.joined().utf8)
    try scene.run(growingBy: 96 << 20) {
      for start in ["GET / HTTP/1.1\r\nHost: b\r\nX: ", "GET /", "GET / HTTP/1.1\r\n"] {
        let sockets = try (0..<50).map { _ in try RawSocket(address) }
        for socket in sockets { _ = try Array(start.utf8).withUnsafeBytes { try socket.write($0) } }
        for socket in sockets {
          // A request head without an end: 16 MiB in one field, or in very many.
          let answer = try pour(start.hasSuffix("\n") ? lines : giant, times: 16, into: socket)
          // The response may be lost if the client keeps sending.
          #expect(answer.hasPrefix("HTTP/1.1 4") || answer.isEmpty, "\(answer)")
        }
      }
    }
  }

  /// The gateway doesn't parse JSON: a line is a record, however deeply it is nested.
  @Test func nestedLinesAreRecordsLikeOthers() throws {
    let (scene, address) = try scene("nested lines", "http")
    let depth = 500_000
    let line = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    try scene.run(growingBy: 96 << 20) {
      for body in [line, String(repeating: "{\"a\":", count: depth / 4), line + "\n" + line] {
        let socket = try RawSocket(address)
        let head =
          "POST /topics/nested HTTP/1.1\r\nHost: b\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        #expect(try pour(Array((head + body).utf8), times: 1, into: socket) == "HTTP/1.1 200 OK")
        let reader = try RawSocket(address)
        let request =
          "GET /topics/nested?from=last:1&until=live HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"
        #expect(try pour(Array(request.utf8), times: 1, into: reader) == "HTTP/1.1 200 OK")
      }
    }
  }

  @Test func subscriptionsByTheHundredThousandAreBounded() throws {
    let (scene, address) = try scene("100,000 subscriptions of a client", "mqtt")
    try scene.run(growingBy: 96 << 20) {
      let client = try RawMQTT(address)
      try client.send(RawMQTT.connect("greedy"))
      #expect(try client.receive().body[1] == 0)
      var granted = 0
      for packet in 0..<100 {
        let filters = (0..<1000).map { "flooded/\(packet)/\($0)/+" }
        try client.send(RawMQTT.subscribe(UInt16(packet + 1), filters))
        let answer = try client.receive()
        try require(answer.type == 0x90, "\(answer)")
        let reasons = answer.body.suffix(1000)
        granted += reasons.count { $0 == 1 }
        try require(reasons.allSatisfy { $0 == 1 || $0 == 0x97 }, "\(reasons)")
      }
      #expect(granted == 10_000)
    }
  }

  /// If an operator allows that many, each message concerns only the matching subscriptions, not all 100,000.
  @Test func subscriptionsByTheHundredThousandAreServed() throws {
    let broker = try BrokerProcess(
      "--listen", "mqtt://127.0.0.1:0", "--mqtt-subscriptions", "65535", "--max-patterns", "1000000",
      "--max-patterns-per-connection", "65535", "--max-subscriptions-per-connection", "65535",
      "--max-streams", "70000")
    let address = String(try #require(broker.addresses.last).dropFirst("mqtt://".count))
    let before = try broker.memory.resident
    let clients = try connected(to: address, count: 2) { RawMQTT.connect($0) }
    for (number, client) in clients.enumerated() {
      for packet in 0..<50 {
        let filters = (0..<1000).map { "many/\(number)/\(packet)/\($0)/+" }
        try client.send(RawMQTT.subscribe(UInt16(packet + 1), filters))
        let answer = try client.receive()
        try require(answer.type == 0x90 && answer.body.suffix(1000).allSatisfy { $0 == 1 }, "\(answer)")
      }
    }
    #expect(try broker.memory.resident - before < 512 << 20)
    let publisher = try connected(to: address, count: 1) { _ in RawMQTT.connect("publisher") }[0]
    for message in 0..<10_000 {
      let (number, packet) = (message % 2, message / 2 % 50)
      let packetID = UInt16(message % 60_000 + 1)
      try publisher.send(RawMQTT.publish(packetID, "many/\(number)/\(packet)/7/x", [UInt8(message & 0xFF)]))
      try require(try publisher.receive().type == 0x40, "a message isn't acknowledged")
      let delivered = try clients[number].receive()
      try require(
        delivered.type == 0x32 && delivered.body.last == UInt8(message & 0xFF),
        "message \(message): \(delivered)")
      try clients[number].send(RawMQTT.acknowledge(delivered.body))
    }
  }

  /// Many clients lose their connections without DISCONNECT at once.
  @Test func willsByTheThousandArePublished() throws {
    let (scene, address) = try scene("wills of clients that are killed", "mqtt")
    var expected: UInt64 = 0
    try scene.run(growingBy: 96 << 20) {
      let clients = try connected(to: address, count: 2000) {
        RawMQTT.connect($0, will: ("gone/all", Array("dead".utf8), 0))
      }
      for client in clients { client.socket.reset() }
      expected += 2000
      try eventually("all wills are published") {
        try scene.broker.show("gone.all").summary.nextOffset == expected
      }
    }
  }

  @Test func willsThatWaitAreBoundedAndTheLogSaysSo() throws {
    let broker = try BrokerProcess(
      "--listen", "mqtt://127.0.0.1:0", "--mqtt-wills-bytes", "64KiB", "--mqtt-sessions", "100000")
    let address = String(try #require(broker.addresses.last).dropFirst("mqtt://".count))
    let payload = [UInt8](repeating: 7, count: 1000)
    let before = try broker.memory.resident
    let clients = try connected(to: address, count: 2000) {
      RawMQTT.connect($0, will: ("gone/late", payload, 3600), expiry: 7200)
    }
    for client in clients { client.socket.reset() }
    // Wills for which there is no room are published immediately, the others an hour later.
    let waiting = (64 << 10) / (payload.count + "gone/late".utf8.count + 5)
    try eventually("the wills that can't wait are published") {
      try broker.show("gone.late").summary.nextOffset == 2000 - UInt64(waiting)
    }
    #expect(try broker.memory.resident - before < 64 << 20)
    func lines(_ text: String) -> Int { broker.process.standardError.lines.count { $0.contains(text) } }
    let early = lines("was published before the end of its delay: the limit mqtt-wills-bytes is reached")
    #expect(early > 0 && early < 500, "\(early) lines")
    // The next line reports how many were left out.
    pause(1.1)
    try connected(to: address, count: 1) { _ in
      RawMQTT.connect("late", will: ("gone/late", payload, 3600), expiry: 7200)
    }[0].socket.reset()
    try eventually("the log says how many lines it has left out") {
      lines("lines about MQTT sessions, subscriptions, topics and wills were left out") > 0
    }
  }

  private func connected(
    to address: String, count: Int, _ connect: (String) -> [UInt8]
  ) throws -> [RawMQTT] {
    let clients = try (0..<count).map { number in
      let client = try RawMQTT(address)
      try client.send(connect("doomed \(number)"))
      return client
    }
    for client in clients { try require(try client.receive().body[1] == 0, "a client was refused") }
    return clients
  }
}
