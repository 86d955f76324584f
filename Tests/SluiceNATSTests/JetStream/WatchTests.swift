import SluiceIO
import SluiceNATS
import SluiceSimulation
import TestSupport
import Testing

@Suite("A watch over a scripted engine")
struct WatchTests {
  /// An engine with consumers, which pushes messages on the test's request.
  private final class Engine {
    let scene: Scene
    var notes: [String] = []
    var watch: JetStreamWatch?
    /// The inbox of the last consumer, the number of its messages, and the number of consumers so far.
    var inbox = ""
    var delivered = 0
    var consumers = 0
    var deleted = 0
    /// The initial messages of the last consumer.
    var contents: [(String, String)] = []
    var refusal: String?
    var isSilent = false

    init(seed: UInt64 = 1) throws {
      scene = try Scene(seed: seed)
      scene.server.script = { [unowned self] message, connection in
        if message.subject.hasPrefix("$JS.API.CONSUMER.DELETE") { deleted += 1 }
        guard message.subject.hasPrefix("$JS.API.CONSUMER.CREATE.C.watch-") else {
          return message.subject.hasPrefix("$JS.API.CONSUMER.DELETE") || message.subject.hasPrefix("flow.")
        }
        consumers += 1
        if isSilent { return true }
        if let refusal { return connection.send(message.reply, payload: bytes(refusal)) }
        let body = String(decoding: message.payload, as: UTF8.self)
        inbox = String(body.split(separator: "\"").first { $0.hasPrefix("_INBOX.") }!)
        delivered = 0
        connection.send(message.reply, payload: bytes(#"{"num_pending":\#(contents.count)}"#))
        for (number, (subject, payload)) in contents.enumerated() {
          push(subject, payload, pending: contents.count - number - 1)
        }
        return true
      }
    }

    func start() throws {
      try scene.open()
      try scene.perform { client in
        watch = try JetStream(client).watch("C", matching: ["c.>"], heartbeat: .seconds(1)) {
          [unowned self] event in
          switch event {
          case .began: notes.append("began")
          case .current: notes.append("current")
          case .interrupted(let error): notes.append("interrupted: \(error.code)")
          case .message(let message):
            notes.append(
              "\(message.subject.text) \(message.removal ?? message.payload.text) \(message.sequence)")
          }
        }
      }
    }

    private var connection: ScriptedConnection { scene.server.connections.last! }

    /// Delivers a message. Its subject isn't the inbox, so it is sent to the inbox's subscription by number.
    func push(_ subject: String, _ payload: String, pending: Int = 0, headers: String = "", skipping: Int = 0)
    {
      delivered += 1 + skipping
      connection.push(
        to: inbox, subject: subject, headers: headers, payload: bytes(payload),
        reply: "$JS.ACK.C.w.1.\(delivered + 100).\(delivered).1795422019436341914.\(pending)")
    }

    func heartbeat(_ headers: String = "", reply: String = "") {
      connection.push(
        to: inbox, subject: inbox,
        headers: "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: \(delivered)\r\n\(headers)\r\n",
        payload: [],
        reply: reply)
    }

    func perform(_ body: () -> Void) { scene.server.loop.perform(body) }

    func expect(_ expected: [String], _ location: SourceLocation = #_sourceLocation) {
      _ = scene.world.run(limit: .seconds(20)) { notes.count >= expected.count }
      #expect(notes == expected, sourceLocation: location)
      notes = []
    }
  }

  @Test("what there is comes first, then the mark, then changes")
  func order() throws {
    let engine = try Engine()
    engine.contents = [("c.a", "1"), ("c.b", "2")]
    try engine.start()
    engine.expect(["began", "c.a 1 101", "c.b 2 102", "current"])
    engine.perform {
      engine.push("c.a", "3")
      engine.push("c.b", "", headers: "NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n")
    }
    engine.expect(["c.a 3 103", "c.b MaxAge 104"])
  }

  @Test("nothing there is told at once")
  func empty() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.perform { engine.push("c.a", "1") }
    engine.expect(["c.a 1 101"])
  }

  @Test("a message or a heartbeat that shows a gap begins the watch anew")
  func gaps() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.contents = [("c.a", "2")]
    engine.perform { engine.push("c.a", "2", skipping: 1) }
    engine.expect(["interrupted: cut-off", "began", "c.a 2 101", "current"])
    engine.perform {
      engine.delivered += 1
      engine.heartbeat()
    }
    engine.expect(["interrupted: cut-off", "began", "c.a 2 101", "current"])
    #expect(engine.consumers == 3)
    #expect(engine.deleted == 2)
  }

  @Test("heartbeats keep the watch, and their absence begins it anew")
  func silence() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    for _ in 0..<10 {
      engine.scene.world.run(for: .seconds(1))
      engine.perform { engine.heartbeat() }
    }
    engine.expect([])
    engine.expect(["interrupted: timeout", "began", "current"])
  }

  @Test("flow control is answered, asked for or seen in a heartbeat")
  func flowControl() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.perform {
      engine.heartbeat(reply: "flow.1")
      engine.heartbeat("Nats-Consumer-Stalled: flow.2\r\n")
    }
    #expect(
      engine.scene.world.run {
        engine.scene.server.published.map(\.subject).suffix(2) == ["flow.1", "flow.2"]
      })
  }

  @Test("after a loss the watch begins anew with the next connection")
  func reconnect() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.perform { engine.scene.server.connections[0].reset() }
    engine.expect(["interrupted: not-sent", "began", "current"])
    #expect(engine.scene.server.connections[1].subjects.count == 2)
  }

  @Test("a refusal is told, and asked again later and later")
  func refusal() throws {
    let engine = try Engine()
    engine.refusal = #"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#
    try engine.start()
    let round = ["began", "interrupted: stream-not-found"]
    engine.expect(round + round + round)
    let before = engine.scene.world.now
    engine.expect(round + round + round)
    #expect(engine.scene.world.now - before > .milliseconds(500))
    engine.refusal = nil
    _ = engine.scene.world.run { engine.notes.last == "current" }
    #expect(engine.notes.suffix(2) == ["began", "current"])
  }

  @Test(
    "a watch that is stopped or released says nothing more, and its consumer is deleted",
    arguments: [true, false])
  func stop(byRelease: Bool) throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.scene.perform { _ in
      if !byRelease {
        engine.watch?.stop()
        engine.watch?.stop()
      }
      engine.watch = nil
    }
    engine.perform { engine.push("c.a", "1") }
    engine.scene.world.run(for: .seconds(30))
    #expect(engine.notes == [])
    #expect(engine.deleted == 1)
    #expect(engine.scene.server.connections[0].subjects.count == 1)
  }

  @Test("a watch may be stopped from within its handler")
  func stopWithin() throws {
    let scene = try Scene()
    try scene.open()
    final class Holder: @unchecked Sendable { var watch: JetStreamWatch? }
    let (holder, box) = (Holder(), Box())
    scene.server.script = { _, _ in true }
    scene.world.network.connections.first?.reset()
    #expect(scene.world.run { !scene.client.isConnected })
    try scene.perform { client in
      holder.watch = try JetStream(client).watch("C", matching: [">"]) { event in
        box.texts.append("event")
        holder.watch?.stop()
      }
    }
    #expect(scene.world.run { !box.texts.isEmpty })
    scene.world.run(for: .seconds(30))
    #expect(box.texts.count == 1)
  }

  @Test("a watch ends with its client")
  func closed() throws {
    let engine = try Engine()
    try engine.start()
    engine.expect(["began", "current"])
    engine.scene.perform { $0.close() }
    engine.scene.world.run(for: .seconds(30))
    #expect(engine.notes == [])
  }
}
