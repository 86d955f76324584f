import Glibc
import SluiceWire
import TestSupport
import Testing

/// A broker whose storage is full, and then has room again.
@Suite(.onItsOwnThread) struct StorageFullTests {
  private let stage: DurableStage

  init() throws {
    stage = try DurableStage("--storage-limit", "16MiB")
  }

  private func create(_ topic: String, keep: String = "24h") throws {
    try stage.sluice("topic", "create", topic, "--storage", "durable", "--sync", "always", "--keep", keep)
  }

  /// Lines of a thousand bytes.
  private static func lines(_ count: Int, _ letter: String) -> String {
    (0..<count).map { "\($0) " + String(repeating: letter, count: 990) + "\n" }.joined()
  }

  @Test func publishersWaitAndEverybodyElseGoesOn() throws {
    for topic in ["old", "new"] { try create(topic) }
    try stage.sluice("pub", "old", "--ack", "durable", input: .bytes(Array(Self.lines(7_000, "o").utf8)))
    let text = Self.lines(10_000, "n")
    let publisher = try stage.broker.sluice(
      "pub", "new", "--ack", "durable", "--complete", input: .bytes(Array(text.utf8)))
    try eventually("the storage is full; \(publisher.messages)") {
      publisher.standardError.text.contains("the broker's storage is full, and publishing is paused")
    }
    try eventually("the log says so") {
      stage.broker.process.standardError.text.contains("storage is full")
    }
    // Every view of the store shows that.
    let shown = try stage.sluice("topic", "show", "new")
    #expect(shown.contains("producers blocked") && shown.contains("storage full"), "\(shown)")
    let info = try stage.broker.show("new")
    #expect(info.storage.state == .full && info.storage.limit == 16 << 20)
    #expect(info.publications.contains { $0.reason == .storageFull })
    try eventually("its size is known") { try stage.broker.show("new").storage.used > 4 << 20 }
    #expect(try stage.sluice("top", "--once").contains("store: full"))
    try eventually("the log names the waiting producer") {
      stage.broker.process.standardError.text.contains("storage is still full")
    }
    // Subscribers continue, and so do producers of topics in memory.
    #expect(try stage.sluice("sub", "old", "--until-live").utf8.count == Self.lines(7_000, "o").utf8.count)
    let there = try stage.sluice("sub", "new", "--until-live")
    #expect(text.hasPrefix(there) && there.utf8.count < text.utf8.count)
    try stage.sluice("pub", "fleeting", "x")
    // A producer that doesn't wait gets an error.
    let hasty = try stage.broker.sluice("pub", "old", "--no-reconnect", "--ack", "durable", "y")
    #expect(try hasty.waitForExit() == .code(1), "\(hasty.messages)")
    #expect(hasty.standardError.text.contains("storage is full"), "\(hasty.messages)")

    try stage.sluice("topic", "delete", "old", "--yes")
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    let said = publisher.standardError.lines
    #expect(said.count { $0.contains("is full, and publishing is paused") } == 1, "\(publisher.messages)")
    #expect(said.count { $0.contains("takes records again") } == 1, "\(publisher.messages)")
    #expect(try stage.sluice("sub", "new") == text)
    #expect(stage.broker.process.standardError.text.contains("storage takes records again"))
    try stage.restart()
    #expect(try stage.sluice("sub", "new") == text)
  }

  @Test func whatIsDroppedByAgeMakesRoom() throws {
    try create("t", keep: "1s")
    let publisher = try stage.broker.sluice(
      "pub", "t", "--ack", "durable", input: .bytes(Array(Self.lines(30_000, "x").utf8)))
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    #expect(try stage.broker.show("t").summary.nextOffset == 30_000)
    try stage.restart()
    #expect(try stage.broker.show("t").summary.nextOffset == 30_000)
  }

  @Test func aCrashWhileItIsFullHarmsNothing() throws {
    for topic in ["old", "new"] { try create(topic) }
    try stage.sluice("pub", "old", "--ack", "durable", input: .bytes(Array(Self.lines(7_000, "o").utf8)))
    let text = Self.lines(10_000, "n")
    let publisher = try stage.broker.sluice("pub", "new", "--ack", "durable", input: .bytes(Array(text.utf8)))
    try eventually("the storage is full; \(publisher.messages)") {
      publisher.standardError.text.contains("is full, and publishing is paused")
    }
    try stage.restart(SIGKILL)
    try stage.sluice("topic", "delete", "old", "--yes")
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    #expect(try stage.sluice("sub", "new", "--until-live") == text)
  }

  @Test(arguments: [
    ["purge", "old", "--yes"], ["trim", "old", "--keep-last", "1"], ["set", "old", "--keep", "1ms"],
  ])
  func anOperatorMakesRoomWithoutDeleting(command: [String]) throws {
    for topic in ["old", "new"] { try create(topic) }
    try stage.sluice("pub", "old", "--ack", "durable", input: .bytes(Array(Self.lines(7_000, "o").utf8)))
    let text = Self.lines(10_000, "n")
    let publisher = try stage.broker.sluice("pub", "new", "--ack", "durable", input: .bytes(Array(text.utf8)))
    try eventually("the storage is full; \(publisher.messages)") {
      publisher.standardError.text.contains("is full, and publishing is paused")
    }
    let process = try ChildProcess.sluice(["topic"] + command, server: stage.broker.address)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    #expect(try stage.sluice("sub", "new", "--until-live") == text)
    let first = try stage.broker.show("old").summary.firstOffset
    #expect(first >= 6_999)
    try stage.restart()
    #expect(try stage.broker.show("old").summary.firstOffset >= first)
  }
}
