import Foundation
import SluiceClient
import TestSupport
import Testing

/// Topics that are restored into a running cluster and backed up from it, while nodes are killed.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct ClusterTransferTests {
  private let directory: TemporaryDirectory
  private static let count = 30_000

  init() throws { directory = try TemporaryDirectory() }

  /// An export of one broker: a large topic, one with every kind of state, and one that has ended.
  private func export() throws -> String {
    let stage = try DurableStage()
    for name in ["large", "orders", "ended"] {
      try stage.sluice("topic", "create", name, "--storage", "durable")
    }
    let text = (0..<Self.count).map { "\($0) \(String(repeating: "x", count: 90))\n" }.joined()
    try stage.sluice("pub", "large", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
    for number in 0..<20 {
      try stage.sluice(
        "pub", "orders", "\(number)", "--key", "k\(number)", "--header", "n=\(number)", "--quiet")
    }
    try stage.sluice("topic", "set", "orders", "--replay-age", "1h")
    try stage.sluice("sub", "orders", "--from", "earliest", "--cursor", "billing", "--count", "12", "--quiet")
    try stage.sluice("sub", "orders", "--from", "earliest", "--group", "workers", "--count", "3", "--quiet")
    try stage.sluice("pub", "ended", "last", "--fail", "because", "--quiet")
    let file = directory.file("one.sluice")
    try stage.sluice("store", "export", stage.data, file, "--quiet")
    return file
  }

  private func tool(_ arguments: [String], _ stage: ClusterStage, node: Int) throws -> ChildProcess {
    let servers = stage.nodes.indices.map { stage.nodes[($0 + node) % 3].address }.joined(separator: ",")
    return try ChildProcess.sluice(arguments, server: servers)
  }

  private func records(_ topic: String, _ server: String) throws -> [String] {
    let process = try ChildProcess.sluice(
      ["sub", topic, "--from", "earliest", "--until-live", "--format", "{offset} {key} {headers} {payload}"],
      server: server)
    _ = try process.waitForExit(within: 300)
    return process.standardOutput.lines
  }

  private func cursor(_ name: String, _ topic: String, _ server: String) throws -> Int? {
    let process = try ChildProcess.sluice(["cursor", "list", topic, "--json"], server: server)
    try process.waitForExit()
    return try process.standardOutput.lines.lazy.compactMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }.first { $0["cursor"] as? String == name }?["next_offset"] as? Int
  }

  private func expectAll(_ server: String, _ why: String) throws {
    let large = try records("large", server)
    #expect(large.count == Self.count, "\(why)")
    let firstWrong = large.enumerated().first { !$1.hasPrefix("\($0)   \($0) ") }
    #expect(firstWrong == nil, "\(why)")
    #expect(try records("orders", server) == (0..<20).map { "\($0) k\($0) n=\($0) \($0)" }, "\(why)")
    #expect(try cursor("billing", "orders", server) == 12, "\(why)")
    let ended = try ChildProcess.sluice(["sub", "ended"], server: server)
    #expect(try ended.waitForExit() == .code(3) && ended.messages.contains("because"), "\(why)")
    let shown = try ChildProcess.sluice(["topic", "show", "orders", "--json"], server: server)
    try shown.waitForExit()
    #expect(shown.standardOutput.text.contains("3600000"), "\(why): \(shown.standardOutput.text)")
  }

  @Test func anExportComesIntoAClusterExactlyOnceAndOutOfItAgain() throws {
    let file = try export()
    let stage = try ClusterStage()
    // Twice, a node is killed in the middle: the owner of the large topic, then the node that the tool uses.
    var complete = false
    for round in 0..<20 where !complete {
      let process = try tool(["restore", file, "--resume"], stage, node: round)
      if round < 2 {
        // First the owner, then the node to which the tool is connected.
        let victim = try round == 0 ? stage.owner(of: "large") : round
        let observer = stage.nodes[(victim + 1) % 3].address
        try eventually("some records; \(process.messages)\(stage.logs)", every: 0.05) {
          let shown = try ChildProcess.sluice(["topic", "show", "large", "--json"], server: observer)
          try shown.waitForExit()
          let object =
            try? JSONSerialization.jsonObject(with: Data(shown.standardOutput.bytes)) as? [String: Any]
          let next = object?["next_offset"] as? Int ?? 0
          return next > (round + 1) * Self.count / 10 || process.currentExit != nil
        }
        stage.nodes[victim].signal(SIGKILL)
      }
      complete = try process.waitForExit(within: 300) == .code(0)
      if round < 2 { try stage.up() }
    }
    try #require(complete)
    try expectAll(stage.nodes[2].address, "restored")

    // Back up from another node while the owners change.
    let backup = directory.file("cluster.sluice")
    let process = try tool(["backup", backup], stage, node: 1)
    #expect(try stage.sluice("cluster", "drain", "b2", "--wait").exit == .code(0))
    #expect(try process.waitForExit(within: 300) == .code(0), "\(process.messages)")
    #expect(process.messages.contains("exported 3 topics"), "\(process.messages)")

    // The backup can be imported into a directory, and into another broker.
    let data = directory.file("data")
    let imported = try ChildProcess(BuiltProduct.path("sluice"), ["store", "import", data, backup])
    #expect(try imported.waitForExit(within: 300) == .code(0), "\(imported.messages)")
    let one = try BrokerProcess(options: ["--data", data])
    try expectAll(one.address, "imported")
    let other = try BrokerProcess(options: ["--data", directory.file("other")])
    let restored = try ChildProcess.sluice(["restore", backup], server: other.address)
    #expect(try restored.waitForExit(within: 300) == .code(0), "\(restored.messages)")
    try expectAll(other.address, "restored elsewhere")
  }

  @Test func aBackupHasWhatWasThereWhileProducersGoOn() throws {
    let broker = try BrokerProcess(options: ["--data", directory.file("live")])
    try broker.run("topic", "create", "t", "--storage", "durable")
    try broker.run("topic", "create", "memory")
    let producer = try broker.sluice("pub", "t", "--ack", "durable", "--quiet", input: .open)
    for number in 0..<2_000 { try producer.write(Array("\(number)\n".utf8)) }
    try eventually("the records") { try broker.show("t").summary.nextOffset == 2_000 }
    let file = directory.file("live.sluice")
    let backup = try broker.sluice("backup", file)
    for number in 2_000..<4_000 { try producer.write(Array("\(number)\n".utf8)) }
    #expect(try backup.waitForExit(within: 300) == .code(0), "\(backup.messages)")
    #expect(backup.messages.contains("exported 1 topic "), "\(backup.messages)")
    producer.closeInput()
    try producer.waitForExit()
    let other = try BrokerProcess(options: ["--data", directory.file("other")])
    try other.run("restore", file)
    let got = try records("t", other.address)
    #expect((2_000...4_000).contains(got.count))
    #expect(got == got.indices.map { "\($0)   \($0)" })

    try broker.run("backup", directory.file("none"), "--topic", "nothing", code: 1)
    let memory = try broker.run("backup", directory.file("none"), "--topic", "memory", code: 1)
    #expect(memory.messages.contains("is in memory"))
    #expect(access(directory.file("none"), F_OK) != 0)
    try broker.run("backup", file, code: 1)
    // With `--keep-copies 1`, only one of the files with the time in their names remains.
    try writeFile(directory.file("copy-20260101T000000Z"), [])
    try broker.run("backup", "--to", directory.file("copy-{time}"), "--keep-copies", "1")
    #expect(access(directory.file("copy-20260101T000000Z"), F_OK) != 0)
  }
}
