import Foundation
import SluiceAccess
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// The broker's log lines about its clients, on standard error.
@Suite(.onItsOwnThread) struct LogTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let users = try ["alice", "bob"].map { name in
      let hash = try #require(PasswordHash(of: "correct horse", cost: .init(logN: 4, r: 1, p: 1)))
      return "\(name):\(hash.text)\n"
    }
    try write("users", users.joined())
    try write("permissions", "alice all >\nbob subscribe >\n")
  }

  private func write(_ name: String, _ text: String) throws {
    let path = directory.file(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    chmod(path, 0o600)
  }

  private func broker(_ options: String...) throws -> BrokerProcess {
    try BrokerProcess(
      options: [
        "--users", directory.file("users"), "--permissions", directory.file("permissions"),
        "--log-format", "json",
      ] + options)
  }

  private func connect(_ user: String, _ password: String, to broker: BrokerProcess) throws -> RawClient {
    let client = try broker.connect()
    try client.send(
      Hello(
        versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "till \"1\"",
        credentials: .password(password, user: user)), stream: 0)
    return client
  }

  /// Connects and publishes a little. Returns the log lines about it, as objects and as text.
  private func lines(_ broker: BrokerProcess) throws -> (objects: [[String: Any]], text: String) {
    let guesser = try connect("alice", "not-the-secret", to: broker)
    #expect(try guesser.expect(Fault.self, stream: 0).code == .authenticationFailed)
    let alice = try connect("alice", "correct horse", to: broker)
    _ = try alice.expect(Welcome.self, stream: 0)
    try alice.send(TopicCreate(topic: "orders", settings: TopicSettings()), stream: 1)
    _ = try alice.expect(TopicInfo.self, stream: 1)
    let bob = try connect("bob", "correct horse", to: broker)
    _ = try bob.expect(Welcome.self, stream: 0)
    try bob.send(TopicDelete(topic: "orders"), stream: 1)
    #expect(try bob.expect(Fault.self, stream: 1).code == .permissionDenied)
    try alice.send(TopicDelete(topic: "orders"), stream: 3)
    _ = try alice.expect(Done.self, stream: 3)
    for client in [guesser, alice, bob] { client.close() }
    try broker.terminate()
    let text = broker.process.standardError.text
    let objects = try text.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }
    return (objects, text)
  }

  @Test func everyLineIsAnObjectAndNoneHasASecret() throws {
    let (objects, text) = try lines(try broker("--log-level", "debug"))
    #expect(!text.contains("not-the-secret") && !text.contains("correct horse"))
    let audited = objects.filter { $0["audit"] as? Bool == true }
    let told = audited.map { [$0["action"], $0["identity"], $0["outcome"]].map { $0 as? String ?? "" } }
    #expect(
      told == [
        ["authenticate", "", "refused"], ["authenticate", "alice", "done"],
        ["create-topic", "alice", "done"], ["authenticate", "bob", "done"],
        ["administer", "bob", "denied"], ["delete-topic", "alice", "done"],
      ])
    #expect(audited.first?["claim"] as? String == "alice")
    #expect(audited.allSatisfy { $0["client"] as? String == "till \"1\"" && $0["peer"] is String })
    let messages = objects.compactMap { $0["message"] as? String }
    #expect(messages.filter { $0 == "a client has connected" }.count == 2)
    #expect(messages.filter { $0 == "a connection was closed" }.count == 3)
  }

  @Test func linesForTheJournalHaveTheirPriority() throws {
    // systemd sets this variable to the identity of the journal's stream.
    let script = #"JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" "$@""#
    let options = ["--listen", "127.0.0.1:0", "--admin", "off", "--log-level", "debug"]
    let broker = try ChildProcess("/bin/sh", ["-c", script, BuiltProduct.path("sluiced")] + options)
    try eventually("it serves") { broker.standardOutput.text.contains("ready") }
    // The log is written by its own thread, without a fixed delay.
    try eventually("it has logged") { !broker.standardError.lines.isEmpty }
    broker.stop()
    let lines = broker.standardError.lines
    #expect(lines.allSatisfy { $0.hasPrefix("<6>2") || $0.hasPrefix("<7>2") }, "\(lines)")
    // With any other stream the lines have no prefix.
    let other = try ChildProcess(
      "/bin/sh", ["-c", #"JOURNAL_STREAM=1:2 exec "$0" "$@""#, BuiltProduct.path("sluiced")] + options)
    try eventually("it serves") { other.standardOutput.text.contains("ready") }
    try eventually("it has logged") { !other.standardError.lines.isEmpty }
    other.stop()
    #expect(other.standardError.lines.allSatisfy { $0.hasPrefix("2") })
  }

  @Test func auditLinesAreWrittenWhateverTheLevel() throws {
    let (objects, _) = try lines(try broker("--log-level", "error"))
    #expect(objects.count == 6)
    #expect(objects.allSatisfy { $0["audit"] as? Bool == true })
  }

  @Test func withoutAuditTheLevelDecides() throws {
    let (objects, _) = try lines(try broker("--log-level", "error", "--audit", "off"))
    #expect(objects.isEmpty)
  }
}
