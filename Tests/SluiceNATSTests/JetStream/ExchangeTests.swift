import EngineTestSupport
import SluiceNATS
import SluiceSimulation
import TestSupport
import Testing

@Suite("JetStream's exchanges with a scripted engine")
struct ExchangeTests {
  /// The outcome of a commit or a read, as text.
  private func outcome<Value>(
    _ scene: Scene, _ begin: (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  )
    throws -> String
  {
    let box = Box()
    scene.perform { client in
      do {
        try begin(JetStream(client)) { result in
          switch result {
          case .success(let value): box.texts.append("\(value)")
          case .failure(let error): box.texts.append("\(error.code)")
          }
        }
      } catch {
        box.texts.append("\((error as! NATSError).code)")
      }
    }
    #expect(scene.world.run { !box.texts.isEmpty })
    #expect(box.texts.count == 1)
    return box.texts.first ?? ""
  }

  private func messages(_ count: Int, size: Int = 1) -> [NATSMessage] {
    (0..<count).map { message("s.\($0)", String(repeating: "x", count: size)) }
  }

  @Test("a batch's messages are numbered, and only the last one asks for an answer")
  func batchHeaders() throws {
    let scene = try Scene()
    try scene.open()
    scene.server.script = { message, connection in
      message.reply.isEmpty
        || connection.send(message.reply, payload: bytes(#"{"stream":"S","seq":3,"count":3}"#))
    }
    for _ in 0..<2 {
      let text = try outcome(scene) { try $0.commit(messages(3), to: "S", $1) }
      #expect(text.contains("sequence: 3"))
    }
    let sent = scene.server.published
    #expect(sent.map { $0.header("Nats-Batch-Sequence") } == ["1", "2", "3", "1", "2", "3"])
    #expect(sent.map { $0.header("Nats-Batch-Commit") } == [nil, nil, "1", nil, nil, "1"])
    #expect(sent.map(\.reply.isEmpty) == [true, true, false, true, true, false])
    #expect(Set(sent.prefix(3).map { $0.header("Nats-Batch-Id") }).count == 1)
    #expect(Set(sent.map { $0.header("Nats-Batch-Id") }).count == 2)
  }

  @Test("a commit without an answer has an unknown outcome, a read only takes too long")
  func silence() throws {
    let scene = try Scene()
    try scene.open()
    scene.server.script = { _, _ in true }
    #expect(try outcome(scene) { try $0.commit(messages(2), to: "S", $1) } == "outcome-unknown")
    #expect(try outcome(scene) { try $0.publish(message("s.a"), to: "S", $1) } == "outcome-unknown")
    #expect(try outcome(scene) { try $0.deleteStream("S", $1) } == "outcome-unknown")
    #expect(try outcome(scene) { try $0.streamInfo("S", $1) } == "timeout")
    #expect(try outcome(scene) { try $0.leaderMessage(.sequence(1), of: "S", $1) } == "timeout")
  }

  @Test("a batch that can't be sent as a whole isn't sent at all")
  func allOrNothing() throws {
    let scene = try Scene { $0.maximumBacklog = 20_000 }
    try scene.open()
    #expect(try outcome(scene) { try $0.commit(messages(10, size: 10_000), to: "S", $1) } == "backlog-full")
    var tooLarge = messages(3)
    tooLarge[2].payload = [UInt8](repeating: 1, count: 100_001)
    #expect(try outcome(scene) { try $0.commit(tooLarge, to: "S", $1) } == "payload-too-large")
    var invalid = messages(3)
    invalid[1].subject = "a b"
    #expect(try outcome(scene) { try $0.commit(invalid, to: "S", $1) } == "invalid-subject")
    #expect(try outcome(scene) { try $0.commit(messages(2), to: "S", $1) } == "no-responders")
    #expect(scene.server.published.map(\.subject) == ["s.0", "s.1"])
  }

  @Test("a connection lost between a batch's bytes leaves it unsent or its outcome unknown, never half known")
  func lost() throws {
    for limit in stride(from: 1, to: 700, by: 7) {
      let scene = try Scene(seed: UInt64(limit))
      try scene.open()
      let connection = scene.server.connections[0]
      connection.resetAfterReceiving = connection.received + limit
      scene.server.script = { message, connection in
        message.reply.isEmpty
          || connection.send(message.reply, payload: bytes(#"{"stream":"S","seq":4,"count":4}"#))
      }
      let text = try outcome(scene) { try $0.commit(messages(4), to: "S", $1) }
      let isWhole = scene.server.published.contains { $0.header("Nats-Batch-Commit") == "1" }
      if isWhole {
        #expect(text.contains("sequence: 4") || text == "outcome-unknown", "after \(limit) bytes: \(text)")
      } else {
        #expect(["outcome-unknown", "not-sent"].contains(text), "after \(limit) bytes: \(text)")
      }
    }
  }

  // MARK: Reads

  private static func stored(_ sequence: Int, _ pending: Int) -> String {
    "NATS/1.0\r\nNats-Stream: S\r\nNats-Subject: s.a\r\nNats-Sequence: \(sequence)\r\nNats-Num-Pending: \(pending)\r\n\r\n"
  }

  @Test(
    "a read of several messages ends with its mark, or with what went wrong",
    arguments: [
      (
        [
          stored(1, 1), stored(5, 0),
          "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-UpTo-Sequence: 7\r\n\r\n",
        ], "1 5 page 5 0 7"
      ),
      (["NATS/1.0 204 EOB\r\nNats-Num-Pending: 3\r\n\r\n"], "page 0 3 nil"),
      (["NATS/1.0 404 No Results\r\n\r\n"], "page 0 0 nil"),
      (["NATS/1.0 413 Too Many Results\r\n\r\n"], "too-many-subjects"),
      (["NATS/1.0 408 Bad Request\r\n\r\n"], "invalid-request"), ([stored(1, 1)], "1 timeout"),
      ([stored(5, 1), stored(5, 0)], "5 malformed-answer"), ([""], "malformed-answer"),
      (["NATS/1.0\r\nNats-Subject: s.a\r\n\r\n"], "malformed-answer"),
      ([stored(1, 1), "NATS/1.0 204 EOB\r\n\r\n", stored(9, 0)], "1 page 1 0 nil"),
    ])
  func pages(answers: [String], expected: String) throws {
    let scene = try Scene()
    try scene.open()
    scene.server.script = { message, connection in
      for answer in answers { connection.send(message.reply, headers: answer) }
      return true
    }
    let box = Box()
    let text = try outcome(scene) { api, done in
      try api.messages(
        of: "S", matching: "s.*", from: 1, count: 10, each: { box.texts.append("\($0.sequence)") }
      ) { result in
        done(result.map { "page \($0.lastSequence) \($0.pending) \($0.upTo.map { "\($0)" } ?? "nil")" })
      }
    }
    #expect((box.texts + [text]).joined(separator: " ") == expected)
    scene.world.run(for: .seconds(30))
  }

  @Test("names that would be other subjects are refused")
  func names() throws {
    let scene = try Scene()
    try scene.open()
    for name in ["", "a.b", "*", ">", "a b", "a/b", "a\r\nPUB x 0"] {
      #expect(try outcome(scene) { try $0.streamInfo(name, $1) } == "invalid-request")
      #expect(try outcome(scene) { try $0.deleteStream(name, $1) } == "invalid-request")
    }
    #expect(scene.server.published.isEmpty)
  }

  @Test("the engine's servers are gathered until those that are expected have answered")
  func servers() throws {
    let scene = try Scene()
    try scene.open()
    scene.server.script = { message, connection in
      for (name, always) in [("n2", true), ("n1", false)] {
        let json =
          #"{"server":{"name":"\#(name)","id":"X","ver":"2.15.1"},"data":{"config":{"sync_interval":120000000000,"sync_always":\#(always)}}}"#
        connection.send(message.reply, payload: bytes(json))
      }
      return message.subject == JetStream.serversSubject
    }
    func ask(_ expected: [String]) throws -> String {
      try outcome(scene) { api, done in
        try api.servers(expecting: expected) { result in
          done(result.map { servers in servers.map { "\($0.name) \($0.syncsAlways)" } })
        }
      }
    }
    #expect(try ask(["n1", "n2"]) == #"["n1 false", "n2 true"]"#)
    #expect(try ask([]) == #"["n1 false", "n2 true"]"#)
    #expect(try ask(["n1", "n3"]) == "timeout")
    scene.server.script = { _, _ in false }
    #expect(try ask([]) == "permission-denied")
  }
}
