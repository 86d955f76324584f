import Foundation
import Glibc
import TestSupport
import Testing

/// Stores that are replaced or removed, with real processes.
@Suite(.onItsOwnThread) struct StoreHistoryTests {
  private static func lines(_ numbers: Range<Int>, _ text: String = "") -> String {
    numbers.map { "\(text)\($0)\n" }.joined()
  }

  private let stage: DurableStage
  private let directory: TemporaryDirectory

  init() throws {
    stage = try DurableStage("--admin", "\(Loopback.freshHost()):0")
    directory = try TemporaryDirectory()
    try stage.sluice("topic", "create", "t", "--storage", "durable")
  }

  private func publish(_ text: String) throws {
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
  }

  /// Kills the broker and removes its store; `bringBack` replaces the store.
  private func replace(_ bringBack: () throws -> Void) throws {
    stage.broker.process.signal(SIGKILL)
    try stage.broker.process.waitForExit()
    try FileManager.default.removeItem(atPath: stage.data)
    try bringBack()
    try stage.start()
  }

  /// Publishes five records, copies the topic with `keep`, publishes seven more, and restores the copy.
  private func goBack(_ keep: () throws -> Void, _ bringBack: () throws -> Void) throws {
    try publish(Self.lines(0..<5))
    try keep()
    let subscribers = try [[], ["--cursor", "c"]].map { more in
      try ChildProcess.sluice(
        ["sub", "t", "--from", "earliest", "--reconnect"] + more, server: stage.address)
    }
    let publisher = try ChildProcess.sluice(
      ["pub", "t", "--ack", "durable"], server: stage.address, input: .open)
    try publisher.write(Array(Self.lines(5..<12).utf8))
    let former = Self.lines(0..<12)
    for subscriber in subscribers { try subscriber.standardOutput.wait(bytes: former.utf8.count) }
    try replace(bringBack)
    for client in subscribers + [publisher] {
      try eventually("it is told; \(client.messages)") {
        client.standardError.text.contains("has lost the last records")
      }
    }
    try publish(Self.lines(5..<8, "another "))
    let all = former + Self.lines(5..<8, "another ")
    for subscriber in subscribers {
      try subscriber.standardOutput.wait(bytes: all.utf8.count)
      #expect(subscriber.standardOutput.text == all, "\(subscriber.messages)")
    }
    try eventually("the problem is shown") {
      try stage.sluice("status").contains("The store has lost records of t that a client has received")
    }
    publisher.stop()
  }

  @Test func afterAnImportClientsAreToldAndGoOnWhereTheHistoriesPart() throws {
    let file = directory.file("backup")
    try goBack {
      try stage.sluice("store", "export", stage.data, file, "--quiet")
    } _: {
      try stage.sluice("store", "import", stage.data, file, "--quiet")
    }
  }

  @Test func afterACopyClientsAreToldAndGoOnWhereTheHistoriesPart() throws {
    let copy = directory.file("copy")
    defer { removeStore(copy) }
    try goBack {
      try stage.restart()
      try FileManager.default.copyItem(atPath: stage.data, toPath: copy)
    } _: {
      try FileManager.default.copyItem(atPath: copy, toPath: stage.data)
    }
  }

  @Test func aStoreThatIsRemovedUnderItsBrokerIsNoticed() throws {
    try publish(Self.lines(0..<5))
    try FileManager.default.removeItem(atPath: stage.data)
    let admin = try #require(stage.broker.adminAddress)
    try eventually("the broker isn't ready") {
      let answer = try ChildProcess(
        "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "http://\(admin)/readyz"])
      try answer.waitForExit()
      return answer.standardOutput.text == "503"
    }
    #expect(try stage.sluice("status", code: 1).contains("was removed"))
    let publisher = try stage.broker.sluice("pub", "t", "--ack", "durable", "waits")
    try eventually("it waits; \(publisher.messages)") {
      publisher.standardError.text.contains("storage")
    }
    #expect(publisher.currentExit == nil)
    publisher.stop()
  }
}
