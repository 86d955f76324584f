import EngineTestSupport
import SluiceIO
import SluiceNATS
import SluiceSimulation
import TestSupport
import Testing

@Suite("A NATS client over the simulated network")
struct ClientTests {
  @Test("requests are answered, and messages reach subscriptions")
  func talk() throws {
    let scene = try Scene()
    scene.server.script = { message, connection in
      guard message.subject == "echo" else { return false }
      return connection.send(message.reply, payload: message.payload)
    }
    try scene.open()
    #expect(scene.events == ["connected to n1"])
    #expect(try scene.request("echo", "hello") == "hello")
    #expect(try scene.request("nothing") == "no-responders")
    let box = Box()
    let subscription = try scene.perform { client in
      try client.subscribe("a.*") { message in box.texts.append(message.payload.text) }
    }
    try scene.perform { client in
      for number in 1...3 { try client.publish("a.b", payload: bytes("\(number)")) }
      try client.publish("b", payload: bytes("no"))
    }
    #expect(scene.world.run { box.texts.count == 3 })
    #expect(box.texts == ["1", "2", "3"])
    try scene.perform { client in
      try client.publish("a.b", payload: bytes("4"))
      client.unsubscribe(subscription)
    }
    _ = try scene.request("nothing")
    #expect(box.texts.count == 3)
  }

  @Test("a message of any size arrives whole, however slow the line", arguments: [0, 1, 15_000, 99_000])
  func sizes(count: Int) throws {
    var conditions = SimulatedConditions()
    conditions.bufferSize = 1_000
    let scene = try Scene(seed: UInt64(count), conditions: conditions)
    scene.server.script = { message, connection in connection.send(message.reply, payload: message.payload) }
    try scene.open()
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }
    let box = Box()
    try scene.perform { client in
      try client.request("echo", payload: payload) { result in box.bytes = try? result.get().payload.array }
    }
    #expect(scene.world.run { box.bytes != nil })
    #expect(box.bytes == payload)
  }

  @Test("a lost connection is followed by one to another server, with the subscriptions")
  func anotherServer() throws {
    let scene = try Scene(servers: 3)
    try scene.open()
    let box = Box()
    try scene.perform { client in
      try client.subscribe("a") { message in box.texts.append(message.payload.text) }
    }
    var used: Set<String> = []
    for _ in 0..<6 {
      let server = try #require(scene.connected)
      used.insert(server.name)
      server.loop.perform { server.connections.last?.reset() }
      #expect(scene.world.run { self.isElsewhere(scene, than: server) })
      let now = try #require(scene.connected)
      #expect(now !== server)
      #expect(scene.world.run { now.connections.last?.subjects.last == "a" })
    }
    #expect(used.count == 3)
    try scene.perform { client in try client.publish("a", payload: bytes("x")) }
    #expect(scene.world.run { box.texts == ["x"] })
  }

  private func isElsewhere(_ scene: Scene, than server: ScriptedServer) -> Bool {
    scene.client.isConnected && scene.connected.map { $0 !== server } ?? false
  }

  @Test("servers that the first one names are found when it is gone")
  func discovered() throws {
    let scene = try Scene()
    let other = try ScriptedServer("n2", world: scene.world, loop: scene.world.makeLoop(), at: "10.0.0.2")
    scene.server.infoFields = #","connect_urls":["10.0.0.1:4222","10.0.0.2:4222"]"#
    try scene.open()
    scene.server.stopListening()
    scene.server.loop.perform { scene.server.connections[0].close() }
    #expect(scene.world.run { other.connections.last?.connect != nil })
    #expect(scene.world.run { scene.events.last == "connected to n2" })
    #expect(scene.events.prefix(2) == ["connected to n1", "interrupted: cut-off"])
  }

  @Test("a silent server is given up on")
  func silent() throws {
    let scene = try Scene()
    try scene.open()
    scene.world.network.cut(.host("10.0.0.1", port: 4_222))
    #expect(scene.world.run { scene.events.count > 1 })
    #expect(scene.events[1] == "interrupted: keepalive-timeout")
    scene.world.network.heal(.host("10.0.0.1", port: 4_222))
    #expect(scene.world.run { scene.events.last == "connected to n1" })
  }

  @Test("a server that reads slowly isn't taken for a silent one")
  func slow() throws {
    var conditions = SimulatedConditions.calm
    conditions.bytesPerSecond = 2_000
    conditions.bufferSize = 1_000
    let scene = try Scene(conditions: conditions) { $0.maximumBacklog = 1 << 20 }
    try scene.open()
    // 90 KB at 2 KB a second: the PING before the reply arrives after 45 seconds.
    let outcome = Outcome()
    scene.perform { client in
      outcome.of {
        try client.request(
          "nothing", payload: [UInt8](repeating: 1, count: 90_000), timeout: .seconds(100), $0)
      }
    }
    #expect(scene.world.run { outcome.text != nil })
    #expect(outcome.text == "no-responders")
    #expect(scene.events == ["connected to n1"])
  }

  @Test("what waits for room is called in turn, each once there is room for it")
  func room() throws {
    var conditions = SimulatedConditions.calm
    conditions.bytesPerSecond = 100_000
    conditions.bufferSize = 1_000
    let scene = try Scene(conditions: conditions)
    try scene.open()
    let box = Box()
    func wait(_ name: String, _ most: Int, sends size: Int) {
      scene.client.whenBacklog(isAtMost: most) { [client = scene.client!] in
        box.texts.append("\(name) \(client.backlog <= most)")
        try? client.publish("a", payload: [UInt8](repeating: 1, count: size))
      }
    }
    scene.perform { client in
      try? client.publish("a", payload: [UInt8](repeating: 1, count: 50_000))
      wait("first", 10_000, sends: 20_000)
      wait("second", 10_000, sends: 20_000)
      // Later messages wait after these, however little room they need.
      wait("third", 1 << 20, sends: 0)
      wait("never", 0, sends: 0)
      #expect(box.texts.isEmpty)
    }
    #expect(scene.world.run { box.texts.count == 1 })
    #expect(scene.client.backlog > 10_000)
    #expect(scene.world.run { box.texts.count == 3 })
    scene.perform { client in client.close() }
    scene.world.run(for: .seconds(10))
    #expect(box.texts == ["first true", "second true", "third true"])
  }

  @Test("a refused client gives up, and says why")
  func refused() throws {
    let scene = try Scene(servers: 2) { $0.credentials = .fixed(.password(user: "u", password: "p")) }
    // Unencrypted bytes must not leave the machine.
    scene.start()
    #expect(scene.world.run { scene.events.last == "closed: gave-up" })
    #expect(scene.events.contains("interrupted: insecure-connection"))
    let other = try Scene(servers: 2) {
      $0.credentials = .fixed(.password(user: "u", password: "p"))
      $0.allowsPlaintextCredentials = true
    }
    for server in other.servers { server.refusal = { _ in "Authorization Violation" } }
    other.start()
    #expect(other.world.run { other.events.last == "closed: gave-up" })
    #expect(other.events.contains("interrupted: authentication-failed"))
  }

  @Test("nothing is called after close, and everything that waited has been told")
  func close() throws {
    let scene = try Scene()
    try scene.open()
    let (outcome, box) = (Outcome(), Box())
    try scene.perform { client in
      try client.subscribe("a", ended: { error in box.texts.append("\(error!.code)") }) { _ in
        box.texts.append("message")
      }
      outcome.of { try client.request("a", $0) }
      try client.publish("a")
      client.close()
      client.close()
      outcome.of { try client.request("a", $0) }
      #expect(throws: NATSError.self) { try client.publish("a") }
    }
    scene.world.run(for: .seconds(60))
    #expect(outcome.all == ["not-sent", "closed"])
    #expect(box.texts == ["closed"])
    #expect(scene.events == ["connected to n1", "closed: closed"])
    #expect(!scene.server.connections.contains { !$0.isOver })
  }

  @Test("a client may be closed, and requests cancelled, from within any callback")
  func reentrancy() throws {
    for place in 0..<4 {
      let scene = try Scene(seed: UInt64(place))
      scene.server.script = { message, connection in
        message.subject == "echo" ? connection.send(message.reply) && connection.send(message.reply) : false
      }
      let box = Box()
      scene.perform { client in
        client.start { event in
          if place == 0, case .connected = event { client.close() }
          if case .closed = event { box.texts.append("closed") }
        }
      }
      _ = scene.world.run(limit: .seconds(5)) { scene.client.isConnected }
      guard place > 0 else {
        #expect(box.texts == ["closed"])
        continue
      }
      try scene.perform { client in
        try client.subscribe("a") { _ in
          if place == 1 { client.close() }
        }
        try client.publish("a")
        try client.publish("a")
        try client.request("echo") { _ in if place == 2 { client.close() } }
        let request = try client.requestMany("echo", timeout: .seconds(1)) { result in
          if place == 3 { client.close() }
          return .more
        }
        client.cancel(request)
        if place == 3 { try client.request("nothing") { _ in client.close() } }
      }
      #expect(scene.world.run { !box.texts.isEmpty })
      scene.world.run(for: .seconds(30))
      #expect(box.texts == ["closed"])
    }
  }

  @Test("a client that is closed while a loss is told doesn't connect again", arguments: [true, false])
  func closedInLoss(byRequest: Bool) throws {
    let scene = try Scene()
    scene.server.script = { _, _ in true }
    try scene.open()
    let box = Box()
    try scene.perform { client in
      try client.request("a", timeout: .seconds(600)) { _ in
        box.texts.append("request")
        if byRequest { client.close() }
      }
      try client.subscribe(
        "b",
        ended: { _ in
          box.texts.append("subscription")
          client.close()
        }
      ) { _ in }
    }
    scene.world.run(for: .seconds(1))
    if !byRequest { scene.perform { $0.close() } }
    scene.server.loop.perform { scene.server.connections[0].close() }
    scene.world.run(for: .seconds(60))
    #expect(box.texts == ["request", "subscription"])
    #expect(scene.server.connections.count == 1)
    #expect(!scene.world.network.connections.contains { !$0.isOver })
    #expect(scene.events.last == "closed: closed")
  }

  @Test("a client that is closed as it loses a server leaves the next one alone")
  func closedInInterruption() throws {
    let scene = try Scene(servers: 2)
    scene.server.stopListening()
    scene.servers[1].stopListening()
    let client = scene.client!
    let box = Box()
    scene.perform { client in
      client.start { event in
        box.texts.append(text(event))
        if case .interrupted = event { client.close() }
      }
    }
    #expect(scene.world.run { box.texts.last == "closed: closed" })
    try scene.servers[0].listen()
    try scene.servers[1].listen()
    scene.world.run(for: .seconds(60))
    #expect(box.texts == ["interrupted: connect-failed", "closed: closed"])
    #expect(scene.servers.allSatisfy { $0.connections.count == 0 })
    #expect(!client.isConnected)
  }

  @Test("a client that is released without being closed leaves nothing behind")
  func released() throws {
    let scene = try Scene()
    weak var client: NATSClient?
    do {
      let other = try NATSClient([scene.server.address], network: scene.world.network, on: scene.loop)
      client = other
      scene.loop.perform { other.start { _ in } }
      #expect(scene.world.run { other.isConnected })
    }
    scene.world.run(for: .seconds(30))
    #expect(client == nil)
    // The client is gone when the server's next bytes arrive.
    scene.server.loop.perform { scene.server.connections[0].write("PING\r\n") }
    #expect(scene.world.run { scene.server.connections[0].isOver })
  }
}

/// Results recorded by callbacks. Unchecked: used by one thread.
final class Box: @unchecked Sendable {
  var texts: [String] = []
  var bytes: [UInt8]?
}
