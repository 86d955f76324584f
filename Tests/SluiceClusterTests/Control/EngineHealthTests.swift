import Foundation
import SluiceNATS
import Testing

@testable import SluiceCluster

@Suite("What the engine's servers lack")
struct EngineHealthTests {
  private static func info(_ replicas: [(name: String, current: Bool, offline: Bool)]) throws -> StreamInfo {
    let others = replicas.map {
      #"{"name":"\#($0.name)","current":\#($0.current),"offline":\#($0.offline)}"#
    }
    let text = """
      {"config":{"name":"SLUICE_CTL","subjects":["ctl.>"]},"state":{"messages":0,"bytes":0,"first_seq":0,"last_seq":0},\
      "cluster":{"leader":"n1","replicas":[\(others.joined(separator: ","))]}}
      """
    return try JSONDecoder().decode(StreamInfo.self, from: Data(text.utf8))
  }

  /// The stream of a shard, with that leader.
  private static func shard(
    led leader: String?, _ replicas: [(name: String, current: Bool, offline: Bool, lag: UInt64)],
    wanted: Int = 3,
    last: UInt64 = 10
  ) throws -> StreamInfo {
    let others = replicas.map {
      #"{"name":"\#($0.name)","current":\#($0.current),"offline":\#($0.offline),"lag":\#($0.lag)}"#
    }
    let text = """
      {"config":{"name":"S","num_replicas":\(wanted)},"state":{"messages":0,"bytes":0,"first_seq":0,"last_seq":\(last)},\
      "cluster":{\(leader.map { "\"leader\":\"\($0)\"," } ?? "")"replicas":[\(others.joined(separator: ","))]}}
      """
    return try JSONDecoder().decode(StreamInfo.self, from: Data(text.utf8))
  }

  private static func complete() throws -> StreamInfo {
    try info([("n2", true, false), ("n3", true, false)])
  }

  @Test("with all copies current nothing is wrong")
  func complete() throws {
    var health = EngineHealth()
    #expect(health.redundancy == nil && health.warnings == [])
    health.take(.success(try Self.complete()))
    health.take(["n1", "n2", "n3"].map { EngineServer(name: $0, version: "2.15.1") })
    #expect(health.redundancy?.copies == 3 && health.redundancy?.current == 3 && health.warnings == [])
  }

  @Test("a lost server is named, and so is what happens if another one is lost")
  func offline() throws {
    var health = EngineHealth()
    health.take(.success(try Self.info([("n2", false, true), ("n3", true, false)])))
    #expect(
      health.warnings.map(\.text) == [
        "server n2 of the engine is offline; start it, or replace it",
        "2 of 3 copies of what is stored are current: durable publishing stops when one more server is lost",
      ])
    #expect(health.redundancy?.current == 2)
    health.take(.success(try Self.info([("n2", false, false), ("n3", true, false)])))
    #expect(health.warnings.first?.text == "server n2 of the engine has yet to get what the others have")
    health.take(.success(try Self.complete()))
    #expect(health.warnings == [])
  }

  @Test("a copy that one answer finds behind is about to catch up, and one that two find behind is named")
  func lagging() throws {
    var health = EngineHealth()
    let behind = try Self.info([("n2", false, false), ("n3", true, false)])
    health.take(.success(behind))
    #expect(health.warnings == [] && health.redundancy?.current == 3)
    health.take(.success(behind))
    #expect(health.warnings.first?.text == "server n2 of the engine has yet to get what the others have")
    health.take(.success(try Self.complete()))
    health.take(.success(behind))
    #expect(health.warnings == [])
  }

  @Test("of five servers one may be lost without a word about the next one")
  func five() throws {
    var health = EngineHealth()
    let others = ["n2", "n3", "n4"].map { (name: $0, current: true, offline: false) }
    health.take(.success(try Self.info(others + [("n5", current: false, offline: true)])))
    #expect(health.warnings.last?.text == "4 of 5 copies of what is stored are current")
  }

  @Test(
    "a server that has disabled JetStream counts as lost, and one that is nearly full is named before that")
  func resources() throws {
    var health = EngineHealth()
    health.take(.success(try Self.complete()))
    health.take([
      EngineServer(name: "n1", version: "2.15.1", stored: 900, storageLimit: 1_000),
      EngineServer(name: "n2", version: "2.15.1", stored: 899, storageLimit: 1_000),
      EngineServer(name: "n3", version: "2.15.1", hasJetStream: false),
    ])
    #expect(health.redundancy?.current == 2)
    #expect(
      health.warnings.map { String($0.text.prefix(50)) } == [
        "server n3 of the engine has disabled JetStream, as",
        "server n1 of the engine has used 90 % of its max_f",
        "2 of 3 copies of what is stored are current: durab",
      ])
    // A reply of another server that knows no leader improves nothing.
    health.take(.failure(NATSError(.timeout, "no answer")))
    #expect(health.warnings.count == 2 && health.redundancy == nil)
    #expect(health.obstacle.hasPrefix("the engine has no majority") == false)
  }

  @Test("that the engine stores nothing has one of three causes")
  func obstacles() throws {
    let complete = try Self.complete()
    func obstacle(_ code: NATSError.Code, disabled: [String] = []) -> String {
      var health = EngineHealth()
      health.take(.success(complete))
      health.take(disabled.map { EngineServer(name: $0, version: "2.15.1", hasJetStream: false) })
      health.renewed(.failure(NATSError(code, "JetStream: no room (10047)")))
      return health.obstacle
    }
    #expect(obstacle(.timeout) == "the engine answers too late")
    #expect(obstacle(.noResponders).hasPrefix("the engine has no majority of its servers: "))
    #expect(obstacle(.unavailable).hasPrefix("the engine has no majority of its servers: "))
    #expect(obstacle(.resourcesExhausted) == "the engine is out of resources: JetStream: no room (10047)")
    #expect(
      obstacle(.noResponders, disabled: ["n1", "n2"])
        .hasPrefix("the engine is out of resources: n1, n2 of its servers have disabled JetStream"))
    #expect(obstacle(.noResponders, disabled: ["n1"]).hasPrefix("the engine has no majority"))
    // Servers without room don't answer writes.
    var full = EngineHealth()
    full.take(.success(complete))
    full.take(
      ["n1", "n2"].map { EngineServer(name: $0, version: "2.15.1", stored: 1_130, storageLimit: 1_000) })
    full.renewed(.failure(NATSError(.timeout, "no answer")))
    #expect(
      full.obstacle.hasPrefix(
        "the engine is out of resources: n1, n2 of its servers have used their max_file_store; "))
  }

  // MARK: The streams of shards

  @Test("copies of shards' streams are missed, where the stream with leases has all of its own")
  func shards() throws {
    var health = EngineHealth()
    health.take(.success(try Self.complete()))
    health.take(
      .success(try Self.shard(led: "n3", [("n4", false, true, 0), ("n5", true, false, 0)])), of: "SLUICE_0")
    health.take(
      .success(try Self.shard(led: "n5", [("n1", true, false, 0), ("n4", false, true, 0)])), of: "SLUICE_10")
    health.take(
      .success(try Self.shard(led: "n1", [("n2", true, false, 0), ("n3", true, false, 0)])), of: "SLUICE_2")
    #expect(
      health.warnings.map(\.text) == [
        "server n4 of the engine is offline, with copies of SLUICE_0, SLUICE_10; start it, or replace it",
        "2 of 3 copies of 2 of 4 streams are current: durable publishing there stops when one more server is lost",
      ])
    #expect(health.redundancy?.copies == 3 && health.redundancy?.current == 2)
    // A deleted shard isn't missed, and neither is one that is complete again.
    health.take(.failure(NATSError(.streamNotFound, "no stream")), of: "SLUICE_0")
    health.take(
      .success(try Self.shard(led: "n5", [("n1", true, false, 0), ("n4", true, false, 0)])), of: "SLUICE_10")
    #expect(health.warnings == [] && health.redundancy?.current == 3)
  }

  @Test("a copy that follows closely isn't behind while messages come, and one that stands still is")
  func followers() throws {
    var health = EngineHealth()
    health.take(.success(try Self.complete()))
    func take(lag: UInt64, last: UInt64) throws {
      let info = try Self.shard(
        led: "n1", [("n2", false, false, lag), ("n3", true, false, 0)], last: last)
      health.take(.success(info), of: "SLUICE_7")
    }
    try take(lag: 5, last: 100)
    #expect(health.inDoubt == ["SLUICE_7"])
    try take(lag: 9, last: 200)
    #expect(health.warnings == [])
    try take(lag: 9, last: 200)
    #expect(
      health.warnings.first?.text == "server n2 of the engine has yet to get what the others have of SLUICE_7"
    )
    try take(lag: 20, last: 300)
    #expect(health.warnings == [])
    try take(lag: 256, last: 400)
    #expect(health.warnings.count == 2 && health.redundancy?.current == 2)
  }

  @Test("a stream without a leader, and one with too few copies, is named")
  func headless() throws {
    var health = EngineHealth()
    health.take(.success(try Self.complete()))
    for number in 0..<5 { health.take(.failure(NATSError(.timeout, "no answer")), of: "SLUICE_\(number)") }
    #expect(health.warnings == [] && health.inDoubt.count == 5)
    for number in 0..<5 { health.take(.success(try Self.shard(led: nil, [])), of: "SLUICE_\(number)") }
    #expect(
      health.warnings.map(\.text) == [
        "no server of the engine leads SLUICE_0, SLUICE_1, SLUICE_2 and 2 more; start the servers that have copies of them"
      ])
    for number in 0..<5 {
      health.take(.success(try Self.shard(led: "n1", [("n2", true, false, 0)])), of: "SLUICE_\(number)")
    }
    #expect(
      health.warnings.first?.text
        == "the engine has fewer copies than it should of SLUICE_0, SLUICE_1, SLUICE_2 and 2 more; add a server"
    )
    #expect(health.redundancy?.copies == 3 && health.redundancy?.current == 2)
  }

  @Test("without a majority of the copies publishing waits")
  func lostMajority() throws {
    var health = EngineHealth()
    health.take(.success(try Self.info([("n2", false, true), ("n3", false, true)])))
    #expect(
      health.warnings.last?.text
        == "1 of 3 copies of what is stored are current: durable publishing waits")
  }

  @Test("figures that change don't make another warning")
  func sameWarning() throws {
    var health = EngineHealth()
    health.take(.success(try Self.complete()))
    let shares = [900, 950].map { (stored: UInt64) -> [EngineWarning] in
      health.take([EngineServer(name: "n1", version: "2.15.1", stored: stored, storageLimit: 1_000)])
      return health.warnings
    }
    #expect(shares[0].map(\.id) == shares[1].map(\.id) && shares[0] != shares[1])
  }

  @Test("all streams are asked about in turn, a few at a time, and those in doubt first")
  func rounds() {
    var rounds = StreamRounds()
    var asked: Set<String> = []
    for _ in 0..<4 {
      let streams = rounds.take(of: 200, urgent: ["SLUICE_199"])
      #expect(streams.first == "SLUICE_199" && streams.count == StreamRounds.atATime)
      #expect(Set(streams).count == streams.count)
      asked.formUnion(streams)
    }
    #expect(asked.count == 200)
    // All existing shards, whichever comes first.
    #expect(rounds.take(of: 64, urgent: ["SLUICE_5", "SLUICE_40"]).count == 64)
    #expect(rounds.take(of: 3, urgent: []).sorted() == ["SLUICE_0", "SLUICE_1", "SLUICE_2"])
    #expect(rounds.take(of: 0, urgent: []) == [])
  }
}
