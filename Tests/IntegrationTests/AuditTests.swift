import Glibc
import TestSupport
import Testing

/// Audit lines for changes of topics by clients of the native protocol: the identity, the topic and the outcome.
@Suite(.onItsOwnThread) struct AuditTests {
  private let stage: AdminAccessTests.Stage

  init() throws {
    stage = try AdminAccessTests.Stage(permissions: "alice all >\nbob subscribe >\n", "--audit", "on")
    try AdminAccessTests.Stage.write("alice's secret\n", to: stage.directory.file("alice"))
    try AdminAccessTests.Stage.write("bob's secret\n", to: stage.directory.file("bob"))
    try run("alice", "topic", "create", "orders")
    try run("alice", "pub", "orders", "--quiet", "a", "b", "c")
  }

  private func run(_ user: String, _ arguments: String..., code: Int32 = 0) throws {
    try stage.broker.run(
      arguments + ["--user", user, "--password-file", stage.directory.file(user)], code: code)
  }

  /// Log lines appear later than replies.
  private func expectLine(
    _ action: String, _ outcome: String, by user: String, of topic: String = "orders"
  ) throws {
    try eventually("a line of \(action) by \(user), \(outcome)") {
      stage.broker.process.standardError.lines.contains { line in
        ["audit=true", "action=\(action) ", "outcome=\(outcome) ", "identity=\(user) ", "topic=\(topic)"]
          .allSatisfy { "\(line) ".contains($0) }
      }
    }
  }

  @Test func settingsThatAreChanged() throws {
    try run("alice", "topic", "set", "orders", "--keep", "48h")
    try expectLine("set-topic", "done", by: "alice")
    try run("alice", "topic", "set", "orders", "--storage", "durable", code: 1)
    try expectLine("set-topic", "refused", by: "alice")
    try run("alice", "topic", "set", "none", "--keep", "48h", code: 1)
    try expectLine("set-topic", "refused", by: "alice", of: "none")
  }

  @Test func recordsThatAreTrimmed() throws {
    try run("alice", "topic", "trim", "orders", "--keep-last", "2")
    try expectLine("trim-topic", "done", by: "alice")
    try run("alice", "topic", "trim", "orders", "--before", "9", code: 1)
    try expectLine("trim-topic", "refused", by: "alice")
  }

  /// Purging a topic means trimming it to its next offset.
  @Test func topicsThatArePurged() throws {
    try run("alice", "topic", "purge", "orders", "--yes")
    try expectLine("trim-topic", "done", by: "alice")
    try run("alice", "topic", "purge", "none", "--yes", code: 1)
    try expectLine("trim-topic", "refused", by: "alice", of: "none")
  }

  @Test func whatIsNotAllowed() throws {
    try run("bob", "topic", "set", "orders", "--keep", "48h", code: 1)
    try run("bob", "topic", "trim", "orders", "--keep-last", "2", code: 1)
    try run("bob", "topic", "purge", "orders", "--yes", code: 1)
    // Each denial is a line.
    try eventually("three lines of what bob isn't allowed") {
      stage.broker.process.standardError.lines.count { line in
        ["audit=true", "outcome=denied", "identity=bob ", "topic=orders"].allSatisfy { line.contains($0) }
      } == 3
    }
  }
}
