import Foundation
import TestSupport
import Testing

/// Exports of a store that a broker has open, with real processes.
@Suite(.onItsOwnThread) struct LiveExportTests {
  private let stage: DurableStage
  private let directory: TemporaryDirectory

  init() throws {
    stage = try DurableStage()
    directory = try TemporaryDirectory()
  }

  private func lines(_ count: Int) -> String {
    (0..<count).map { "\($0) \(String(repeating: "x", count: 90))\n" }.joined()
  }

  /// Imports an export into a store, verifies it, and returns the contents that a broker serves from it.
  private func restored(_ file: String, _ name: String) throws -> String {
    let data = directory.file(name)
    try stage.sluice("store", "import", data, file, "--quiet")
    #expect(try stage.sluice("store", "verify", data).hasSuffix(": no damage\n"))
    let broker = try BrokerProcess(options: ["--data", data])
    defer {
      broker.process.stop()
      removeStore(data)
    }
    return try broker.run("sub", "t", "--until-live").standardOutput.text
  }

  @Test func whatIsPublishedMeanwhileIsInItOrNot() throws {
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "always")
    let text = lines(20_000)
    try stage.sluice("pub", "t", "--ack", "durable", "0 first")
    let publisher = try stage.broker.sluice(
      "pub", "t", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
    for number in 0..<3 {
      let file = directory.file("export.\(number)")
      try stage.sluice("store", "export", stage.data, file, "--quiet")
      let restored = try restored(file, "restored.\(number)")
      #expect(restored.hasPrefix("0 first\n") && ("0 first\n" + text).hasPrefix(restored), "\(number)")
    }
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    let last = directory.file("export")
    try stage.sluice("store", "export", stage.data, last, "--quiet")
    #expect(try restored(last, "restored") == "0 first\n" + text)
    #expect(try stage.sluice("sub", "t", "--until-live") == "0 first\n" + text)
  }

  @Test func anExportThatIsKilledOrWaitsHoldsUpNothing() throws {
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "always")
    let text = lines(20_000)
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
    // Its reader consumes nothing, so the export waits in the middle.
    let waiting = try ChildProcess(
      "/bin/sh", ["-c", "exec \(BuiltProduct.path("sluice")) store export \(stage.data) | sleep 1000"])
    try eventually("it reads") {
      try stage.sluice("topic", "show", "t").contains("20000 kept") && waiting.currentExit == nil
    }
    try stage.sluice("topic", "purge", "t", "--yes")
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", "next")
    #expect(try stage.sluice("sub", "t", "--until-live") == "next\n")
    // A broker starts while the export still runs.
    try stage.restart()
    #expect(try stage.sluice("sub", "t", "--until-live") == "next\n")
    waiting.stop()
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
    let file = directory.file("export")
    try stage.sluice("store", "export", stage.data, file, "--quiet")
    #expect(try restored(file, "restored") == "next\n" + text)
  }

  @Test func copiesHaveTheTimeInTheirNames() throws {
    try stage.sluice("topic", "create", "t", "--storage", "durable")
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", "x")
    let old = ["t-20200101T000000Z.x", "t-20210101T000000Z.x", "t-other.x", "t-20220101T000000Z.x.partial"]
    for name in old { try "old".write(toFile: directory.file(name), atomically: true, encoding: .utf8) }
    let template = directory.file("t-{time}.x")
    try stage.sluice("store", "export", stage.data, "--to", template, "--keep-copies", "2", "--quiet")
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    #expect(names.count == 4 && !names.contains(old[0]) && Set(names).isSuperset(of: old[1...]))
    let made = try #require(names.first { !old.contains($0) })
    #expect(try restored(directory.file(made), "restored") == "x\n")
    try stage.sluice(
      "store", "export", stage.data, "--keep-copies", "2", "--to", directory.file("plain"), code: 2)
    try stage.sluice("store", "export", stage.data, "file", "--to", template, code: 2)
  }
}
