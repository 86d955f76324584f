import SluiceIO
import SluiceNATS
import SluiceSimulation
import TestSupport
import Testing

/// The connection is reset at each byte of a conversation, in either direction.
@Suite("A NATS client whose connection is lost at any byte")
struct LossTests {
  enum Side: CaseIterable {
    case received
    case sent
  }

  @Test(
    "each request has one outcome that agrees with what the server did, and the next connection works",
    arguments: Side.allCases)
  func everyByte(side: Side) throws {
    var limit = 0
    while try play(side, limit) { limit += 1 }
    // Up to the end of the conversation.
    #expect(limit > 250)
  }

  /// Returns whether the connection was lost within the conversation.
  private func play(_ side: Side, _ limit: Int) throws -> Bool {
    let scene = try Scene(seed: UInt64(limit))
    var isFirst = true
    scene.server.script = { message, connection in
      message.subject == "echo" ? connection.send(message.reply, payload: message.payload) : false
    }
    let server = scene.server
    server.prepare = { connection in
      if isFirst {
        if side == .received {
          connection.resetAfterReceiving = limit
        } else {
          connection.resetAfterSending = limit
        }
      }
      isFirst = false
    }
    scene.start()
    let box = Box()
    try scene.perform { client in
      try client.subscribe("news") { message in box.texts.append(message.payload.text) }
    }
    _ = scene.world.run { !scene.events.isEmpty }
    let outcomes = (0..<4).map { _ in Outcome() }
    scene.perform { client in
      for (number, outcome) in outcomes.enumerated() {
        outcome.of { try client.request("echo", payload: bytes("\(number)"), $0) }
      }
    }
    _ = scene.world.run { outcomes.allSatisfy { $0.text != nil } }
    let executed = Set(
      server.published.filter { $0.subject == "echo" }.map { String(decoding: $0.payload, as: UTF8.self) })
    for (number, outcome) in outcomes.enumerated() {
      let text = try #require(outcome.text, "request \(number) has no outcome, \(side) \(limit)")
      if executed.contains("\(number)") {
        #expect(["\(number)", "outcome-unknown"].contains(text), "\(side) \(limit)")
      } else {
        #expect(["not-sent", "outcome-unknown"].contains(text), "\(side) \(limit)")
      }
    }
    // Requests after the loss work as before.
    let first = try #require(server.connections.first)
    first.resetAfterReceiving = .max
    first.resetAfterSending = .max
    scene.world.run(for: .milliseconds(100))
    #expect(scene.world.run { scene.client.isConnected }, "\(side) \(limit): \(scene.events)")
    #expect(try scene.request("echo", "again") == "again", "\(side) \(limit)")
    try scene.perform { client in try client.publish("news", payload: bytes("x")) }
    #expect(scene.world.run { box.texts == ["x"] }, "\(side) \(limit): \(box.texts)")
    scene.world.run(for: .seconds(10))
    #expect(outcomes.allSatisfy { $0.all.count == 1 }, "\(side) \(limit)")
    return first.isOver
  }

  @Test("faults at random times leave no request without its outcome", arguments: 0..<30 as Range<UInt64>)
  func storms(seed: UInt64) throws {
    let scene = try Scene(seed: seed, servers: 3, conditions: SimulatedConditions())
    for server in scene.servers {
      server.script = { message, connection in
        message.subject == "echo" ? connection.send(message.reply, payload: message.payload) : false
      }
    }
    scene.world.faults.resetEvery = .milliseconds(400)
    scene.world.faults.cutEvery = .seconds(2)
    scene.world.faults.stallEvery = .seconds(2)
    scene.start()
    var outcomes: [(String, Outcome)] = []
    for number in 0..<300 {
      let outcome = Outcome()
      let payload = "\(number):" + String(repeating: "x", count: Int(scene.world.random.next(below: 3_000)))
      scene.perform { client in
        outcome.of { try client.request("echo", payload: bytes(payload), timeout: .seconds(3), $0) }
      }
      outcomes.append((payload, outcome))
      scene.world.run(for: scene.world.random.next(in: .zero ... .milliseconds(30)))
    }
    scene.world.faults = SimulatedFaults()
    #expect(scene.world.run { outcomes.allSatisfy { $0.1.text != nil } })
    let executed = Set(
      scene.servers.flatMap { $0.published.map { String(decoding: $0.payload, as: UTF8.self) } })
    var answered = 0
    for (payload, outcome) in outcomes {
      #expect(outcome.all.count == 1)
      let text = outcome.text ?? ""
      let mayBe =
        executed.contains(payload)
        ? [payload, "outcome-unknown", "timeout"] : ["not-sent", "outcome-unknown", "timeout"]
      #expect(mayBe.contains(text), "seed \(seed): \(payload.prefix(10)) is \(text)")
      if text == payload { answered += 1 }
    }
    // Each server has received each request at most once.
    let all = scene.servers.flatMap(\.published).filter { $0.subject == "echo" }
    #expect(all.count == executed.count)
    #expect(answered > 0)
  }
}
