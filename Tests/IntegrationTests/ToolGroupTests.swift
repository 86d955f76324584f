import Glibc
import SluiceWire
import TestSupport
import Testing

/// Workers that are processes: `sluice sub --group`.
@Suite(.onItsOwnThread) struct ToolGroupTests {
  private func lines(_ process: ChildProcess) -> [String] { process.standardOutput.lines }

  @Test func workersShareTheJobsAndEndWithTheTopic() throws {
    let broker = try BrokerProcess()
    try broker.client().create("jobs")
    let workers = try (0..<3).map { _ in
      try broker.sluice("sub", "jobs", "--group", "workers", "--ack", "explicit", "--demand", "2")
    }
    try broker.waitForSubscriptions(3, on: "jobs")
    let producer = try broker.client("producer")
    try producer.publishAll((0..<300).map { "job \($0)" }, to: "jobs")
    try producer.end("jobs")
    for worker in workers { #expect(try worker.waitForExit() == .code(0), "\(worker.messages)") }
    let all = workers.flatMap(lines)
    #expect(all.count == 300)
    #expect(Set(all) == Set((0..<300).map { "job \($0)" }))
    #expect(workers.allSatisfy { !lines($0).isEmpty })
  }

  @Test func whatAKilledWorkerHadIsDoneByTheOthers() throws {
    let broker = try BrokerProcess()
    try broker.client().create("jobs")
    let options = ["sub", "jobs", "--group", "workers", "--ack", "explicit"]
    // It receives one job and never finishes it.
    let stuck = try ChildProcess.sluice(options + ["--exec", "sleep 1000"], server: broker.address)
    try broker.waitForSubscriptions(1, on: "jobs")
    let producer = try broker.client("producer")
    try producer.publishAll(["first", "second"], to: "jobs")
    try eventually("the first job is under way") { try broker.show("jobs").subscriptions.first?.sent == 1 }
    let worker = try ChildProcess.sluice(
      options + ["--format", "{payload} {deliveries}", "--count", "2"], server: broker.address)
    try eventually("the second job is done") { self.lines(worker) == ["second 1"] }
    stuck.signal(SIGKILL)
    #expect(try worker.waitForExit() == .code(0), "\(worker.messages)")
    #expect(lines(worker) == ["second 1", "first 2"])
    // Printed records were acknowledged, so that none is left.
    try producer.end("jobs")
    let last = try ChildProcess.sluice(options, server: broker.address)
    #expect(try last.waitForExit() == .code(0), "\(last.messages)")
    #expect(lines(last) == [])
  }

  @Test func aRecordWhoseCommandFailsGoesToTheDeadLetters() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try producer.publishAll(["good", "bad", "better"], to: "jobs")
    try producer.end("jobs")
    let worker = try broker.sluice(
      "sub", "jobs", "--group", "workers", "--ack", "explicit", "--deliveries", "3", "--dead-letters", "dead",
      "--from", "earliest", "--exec", "grep -v bad && echo try $SLUICE_DELIVERIES")
    #expect(try worker.waitForExit() == .code(0), "\(worker.messages)")
    #expect(lines(worker) == ["good", "try 1", "better", "try 1"])
    #expect(worker.standardError.lines.count { $0.contains("retried") } == 3)
    let letters = try broker.sluice(
      "sub", "dead", "--until-live", "--format",
      "{payload} {header:sluice-dead-reason} {header:sluice-dead-deliveries}")
    #expect(try letters.waitForExit() == .code(0))
    #expect(lines(letters) == ["bad retried 3"])
  }

  @Test func aCommandRejectsItsRecordByItsExitStatus() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try producer.publishAll(["good", "bad"], to: "jobs")
    try producer.end("jobs")
    let worker = try broker.sluice(
      "sub", "jobs", "--group", "workers", "--ack", "explicit", "--dead-letters", "dead", "--from",
      "earliest",
      "--exec", "grep -v bad || exit 65")
    #expect(try worker.waitForExit() == .code(0), "\(worker.messages)")
    #expect(worker.standardError.lines.count { $0.contains("the record is rejected") } == 1)
    let letters = try broker.sluice(
      "sub", "dead", "--until-live", "--format", "{payload} {header:sluice-dead-reason}")
    #expect(try letters.waitForExit() == .code(0))
    #expect(lines(letters) == ["bad rejected"])
  }

  @Test func aRetryWaitsAndIsShown() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try producer.publishAll(["bad", "good"], to: "jobs")
    let worker = try broker.sluice(
      "sub", "jobs", "--group", "workers", "--ack", "explicit", "--retry-backoff", "1h..24h", "--from",
      "earliest", "--count", "2", "--exec", "grep -v bad")
    #expect(try worker.waitForExit() == .code(0), "\(worker.messages)")
    let shown = try broker.sluice("group", "show", "jobs", "workers")
    #expect(try shown.waitForExit() == .code(0))
    #expect(shown.standardOutput.text.contains("1 record, the next retry in 59 min"))
    let listed = try broker.sluice("group", "list", "--json")
    #expect(try listed.waitForExit() == .code(0))
    #expect(listed.standardOutput.text.contains("\"delayed\":1,\"next_retry_ms\":3"))
    // Another delay than the group's is the member's own affair.
    try producer.publishAll(["bad"], to: "jobs")
    let other = try broker.sluice(
      "sub", "jobs", "--group", "workers", "--ack", "explicit", "--retry-backoff", "1h..24h", "--retry-after",
      "1ms", "--count", "3", "--exec", "grep -v bad || test $SLUICE_DELIVERIES -gt 2")
    #expect(try other.waitForExit() == .code(0), "\(other.messages)")
  }

  @Test func aGroupOfOtherSettingsIsSaidSo() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.join("jobs", "workers", stream: 1)
    let worker = try broker.sluice("sub", "jobs", "--group", "workers", "--ack", "explicit")
    #expect(try worker.waitForExit() == .code(1))
    #expect(worker.standardError.text.contains("automatic acknowledgement"))
  }
}
