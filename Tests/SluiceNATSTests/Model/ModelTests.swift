import EngineTestSupport
import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import Synchronization
import TestSupport
import Testing

@Suite("The model of the engine")
struct ModelTests {
  @Test("answers as it should")
  func answers() throws {
    let client = try ModelClient()
    for exchange in Exchange.table {
      let answer = try exchange.answer(client)
      #expect(answer == Self.expected[exchange.name] ?? answer, "\(exchange.name)")
    }
  }

  /// Some replies word for word, for machines without the real server.
  private static let expected = [
    "a batch": "S 3 of 3", "a stale batch": "wrong-last-sequence 10071, last 3",
    "the same id": "S 8 again of 1",
    "too many subjects": "[] too-many-subjects", "no stream's": "no-responders",
    "a page": "[11, 12, 13, 14] 14 pending 6 up to 0",
  ]

  @Test(
    "answers as three real servers do",
    .enabled(
      if: EngineProcess.program != nil, "nats-server isn't installed: scripts/nats-server.sh installs it"))
  func comparison() throws {
    let cluster = try EngineCluster()
    let real = try RealClient(cluster.servers) {
      $0.credentials = .fixed(.password(user: "app", password: "secret"))
    }.open()
    // The servers elect a leader first.
    _ = try real.retry { try $0.createStream(StreamConfiguration("FIRST", subjects: ["first"]), $1) }
    let model = try ModelClient()
    for exchange in Exchange.table {
      let (modelled, answered) = try (exchange.answer(model), exchange.answer(real))
      #expect(modelled == answered, "\(exchange.name)")
    }
  }

  @Test("replicates: what is acknowledged outlives leaders, and what isn't may be there once or not at all")
  func leaders() throws {
    for seed in 1...UInt64(40) {
      let model = try ModelClient(seed: seed, conditions: SimulatedConditions())
      let (world, engine) = (model.world, model.engine)
      var created = Exchange.configuration
      created.replicas = 3
      let stream = created
      _ = try model.result { try $0.createStream(stream, $1) }.get()
      engine.faults.resetOneIn = 10
      engine.faults.silentOneIn = 20
      engine.faults.refusedOneIn = 20
      var acknowledged: [Int] = []
      var outcomes = 0
      for number in 0..<60 {
        if number % 10 == 5, let leader = engine.leader(of: "S") {
          seed % 2 == 0 ? engine.crash(leader) : engine.pause(leader)
        }
        if number % 10 == 9 {
          for index in engine.servers.indices {
            engine.restart(index)
            engine.resume(index)
          }
        }
        model.perform { api in
          do {
            try api.commit([message("s.a", "\(number)"), message("s.b", "\(number)")], to: "S") { result in
              outcomes += 1
              if case .success = result { acknowledged.append(number) }
            }
          } catch {
            outcomes += 1
          }
        }
        world.run(for: .milliseconds(300))
      }
      engine.heal()
      world.run(for: .seconds(20))
      #expect(outcomes == 60, "seed \(seed)")
      #expect(acknowledged.count > 5, "seed \(seed)")
      let stored = engine.contents(of: "S")!.all
      let numbers = stored.filter { $0.subject == "s.a" }.map {
        Int(String(decoding: $0.payload, as: UTF8.self))!
      }
      #expect(Set(numbers).count == numbers.count, "seed \(seed)")
      #expect(Set(acknowledged).isSubset(of: numbers), "seed \(seed)")
      #expect(stored.filter { $0.subject == "s.b" }.count == numbers.count, "seed \(seed)")
      #expect(stored.map(\.sequence) == stored.map(\.sequence).sorted(), "seed \(seed)")
    }
  }

  @Test("a follower answers with old data, the leader with all")
  func stale() throws {
    let model = try ModelClient()
    _ = try model.result { try $0.createStream(Exchange.configuration, $1) }.get()
    for server in model.engine.servers { server.lag = .seconds(5) }
    _ = try model.result { try $0.publish(message("s.a", "1"), to: "S", $1) }.get()
    let leader = try model.result { try $0.leaderMessage(.sequence(1), of: "S", $1) }
    #expect(throws: Never.self) { try leader.get() }
    var stale = 0
    for _ in 0..<40 {
      let result: Result<StoredMessage, NATSError> = try model.result { api, done in
        try api.message(.sequence(1), of: "S") { done($0.map { StoredMessage($0) }) }
      }
      if case .failure(let error) = result, error.code == .messageNotFound { stale += 1 }
    }
    #expect(stale > 0)
    model.world.run(for: .seconds(5))
    let result: Result<StoredMessage, NATSError> = try model.result { api, done in
      try api.message(.sequence(1), of: "S") { done($0.map { StoredMessage($0) }) }
    }
    #expect(throws: Never.self) { try result.get() }
  }

  @Test("a server that is full stores nothing and says so")
  func full() throws {
    let model = try ModelClient()
    _ = try model.result { try $0.createStream(Exchange.configuration, $1) }.get()
    model.engine.isFull = true
    let result = try model.result { try $0.publish(message("s.a", "1"), to: "S", $1) }
    guard case .failure(let error) = result else {
      Issue.record("a full engine has stored something")
      return
    }
    #expect(error.code == .resourcesExhausted)
  }

  @Test("a watch sees last messages, changes and markers, over crashes of any server")
  func watch() throws {
    for seed in 1...UInt64(20) {
      let model = try ModelClient(seed: seed, conditions: SimulatedConditions())
      let (world, engine) = (model.world, model.engine)
      var created = Exchange.configuration
      created.maximumPerSubject = 1
      created.deleteMarkerTimeToLive = 1_000_000_000
      let stream = created
      _ = try model.result { try $0.createStream(stream, $1) }.get()
      final class Seen {
        var known: [String: String] = [:]
        var marked = 0
        var isCurrent = false
      }
      let seen = Seen()
      let watch = try model.perform { api in
        try api.watch("S", matching: ["s.>"]) { event in
          switch event {
          case .began: seen.known = [:]
          case .current: seen.isCurrent = true
          case .interrupted: seen.isCurrent = false
          case .message(let message):
            if message.removal != nil { seen.marked += 1 }
            seen.known[message.subject.text] = message.removal == nil ? message.payload.text : nil
          }
        }
      }
      for number in 0..<100 {
        if number % 30 == 10 { engine.crash(Int(seed) % 3) }
        if number % 30 == 25 { engine.restart(Int(seed) % 3) }
        model.perform { api in
          let passing = message("s.t.\(number % 4)", "x") { $0.setTimeToLive(.seconds(1)) }
          try? api.publish(number % 10 == 0 ? passing : message("s.\(number % 7)", "\(number)"), to: "S") {
            _ in
          }
        }
        world.run(for: .milliseconds(100))
      }
      engine.heal()
      let isComplete = world.run(limit: .seconds(60)) {
        guard seen.isCurrent, let contents = engine.contents(of: "S") else { return false }
        let stored = contents.all.filter { $0.message["Nats-Marker-Reason"] == nil }
        return seen.known
          == Dictionary(
            uniqueKeysWithValues: stored.map { ($0.subject, String(decoding: $0.payload, as: UTF8.self)) })
          && !seen.known.isEmpty && !seen.known.keys.contains { $0.hasPrefix("s.t.") }
      }
      #expect(isComplete, "seed \(seed): \(seen.known)")
      #expect(seen.marked > 0, "seed \(seed)")
      model.perform { _ in watch.stop() }
    }
  }

  @Test("the servers tell of their settings")
  func settings() throws {
    let model = try ModelClient()
    #expect(try model.result { try $0.servers($1) }.get().flatMap { $0.objections() } == [])
    model.engine.syncsAlways = false
    #expect(try model.result { try $0.servers($1) }.get().flatMap { $0.objections() }.count == 3)
    model.engine.tellsSettings = false
    let result = try model.result { try $0.servers($1) }
    #expect(throws: NATSError.self) { try result.get() }
  }
}
