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
      health.warnings == [
        "server n2 of the engine is offline; start it, or replace it",
        "2 of 3 copies of what is stored are current: durable publishing stops when one more server is lost",
      ])
    #expect(health.redundancy?.current == 2)
    health.take(.success(try Self.info([("n2", false, false), ("n3", true, false)])))
    #expect(health.warnings.first == "server n2 of the engine has yet to get what the others have")
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
    #expect(health.warnings.first == "server n2 of the engine has yet to get what the others have")
    health.take(.success(try Self.complete()))
    health.take(.success(behind))
    #expect(health.warnings == [])
    health.forget()
    health.take(.success(behind))
    #expect(health.warnings == [])
  }

  @Test("of five servers one may be lost without a word about the next one")
  func five() throws {
    var health = EngineHealth()
    let others = ["n2", "n3", "n4"].map { (name: $0, current: true, offline: false) }
    health.take(.success(try Self.info(others + [("n5", current: false, offline: true)])))
    #expect(health.warnings.last == "4 of 5 copies of what is stored are current")
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
      health.warnings.map { String($0.prefix(50)) } == [
        "server n3 of the engine has disabled JetStream, as",
        "server n1 of the engine has used 90 % of its max_f",
        "2 of 3 copies of what is stored are current: durab",
      ])
    health.forget()
    #expect(health.warnings == [] && health.redundancy == nil)
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
    // Servers without room leave writes unanswered.
    var full = EngineHealth()
    full.take(.success(complete))
    full.take(
      ["n1", "n2"].map { EngineServer(name: $0, version: "2.15.1", stored: 1_130, storageLimit: 1_000) })
    full.renewed(.failure(NATSError(.timeout, "no answer")))
    #expect(
      full.obstacle.hasPrefix(
        "the engine is out of resources: n1, n2 of its servers have used their max_file_store; "))
  }
}
