import Glibc
import SluiceWire
import TestSupport
import Testing

/// Owners that are paused for longer than their lease, and wake up: none of their writes counts after their successor's term has started.
///
/// `SLUICE_STALE_TRIES` sets the number of tries, by default 2. `SLUICE_SEED` repeats a run, as far as the test itself is random.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct StaleOwnerTests {
  @Test func anOwnerThatWakesUpBehindItsSuccessorDoesNothing() throws {
    let tries = getenv("SLUICE_STALE_TRIES").flatMap { Int(String(cString: $0)) } ?? 2
    var random = SeededRandom.printed()
    let stage = try ClusterStage()
    let topics: [(name: String, sync: TopicSettings.Sync)] = [
      ("stale.always", .always), ("stale.later", .interval(50)),
    ]
    for topic in topics {
      var settings = TopicSettings(
        replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
        replayAge: TopicSettings.unlimited)
      settings.storage = .durable
      settings.sync = topic.sync
      // Its shard may be moving to another node.
      try eventually("\(topic.name) is there") {
        let client = try RawClient(stage.nodes[0].address)
        defer { client.close() }
        try client.shakeHands()
        do {
          try client.create(topic.name, settings)
          return true
        } catch {
          guard "\(error)".contains("topic-moved") else { throw error }
          return false
        }
      }
    }

    var violations: [String] = []
    for number in 1...tries {
      let topic = topics[number % 2]
      let owner = StaleOwner(
        stage: stage, topic: topic.name, number: number, deliversUnsaved: topic.sync != .always)
      let findings = try owner.wake(&random)
      print("try \(number): \(topic.name), \(findings)")
      fflush(nil)
      violations += findings.violations.map { "try \(number): \($0)" }
    }
    var voidMessages = 0
    let engine = try stage.engineClient()
    for topic in topics {
      let owner = StaleOwner(stage: stage, topic: topic.name, number: 0, deliversUnsaved: false)
      let records = try EngineRecords(shard: owner.shard, engine)
      voidMessages += records.voidMessages
      #expect(records.terms == records.terms.sorted() && records.terms.count >= tries / 2)
      let stored = try Set(owner.marks())
      violations += stored.subtracting(records.counting).map {
        "\($0) can be read, and is in no message of the engine that was sent under the last fence before it"
      }
      violations += records.void.subtracting(records.counting).intersection(stored).map {
        "\($0) can be read, and only a former owner has sent it"
      }
    }
    print(
      "\(tries) tries: \(violations.count) violations, \(voidMessages) messages of former owners stored and void"
    )
    #expect(violations.isEmpty)
  }
}
