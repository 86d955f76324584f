import Glibc
import TestSupport
import Testing

/// Options for members of a group and users of a cursor: which records may be outstanding, for how long, and when they count as done.
@Suite(.onItsOwnThread) struct SubGroupOptionTests {
  private let broker: BrokerProcess
  private let work: HeldCommand

  init() throws {
    broker = try BrokerProcess()
    work = try HeldCommand()
    for (text, key) in [("a", "k"), ("b", "k"), ("c", "l")] {
      try broker.run("pub", "jobs", text, "--key", key, "--quiet")
    }
  }

  /// A member whose command never finishes its first record.
  private func stuckMember(_ options: String...) throws -> ChildProcess {
    let process = try ChildProcess.sluice(
      ["sub", "jobs", "--group", "g", "--from", "earliest", "--exec", "cat; \(work.text)"] + options,
      server: broker.address)
    try process.standardOutput.wait(bytes: 1)
    #expect(process.standardOutput.text == "a")
    return process
  }

  /// The first `count` records that another member of the group gets.
  private func nextMember(_ count: Int, _ options: String...) throws -> [String] {
    let arguments = [
      "sub", "jobs", "--group", "g", "--count", "\(count)", "--format", "{payload} {deliveries}",
    ]
    return try broker.run(arguments + options).standardOutput.lines
  }

  private func cursor(_ name: String) throws -> [String: Any]? {
    try broker.run("cursor", "list", "jobs", "--json").standardOutput.lines.map(object).first {
      $0["cursor"] as? String == name
    }
  }

  @Test func byKeyTheNextOfAKeyWaitsForTheOneBeforeIt() throws {
    let member = try stuckMember("--ack", "explicit", "--order", "by-key")
    #expect(try nextMember(1, "--ack", "explicit", "--order", "by-key") == ["c 1"])
    work.letGo()
    try member.standardOutput.wait(bytes: 2)
    member.stop()
  }

  @Test func otherwiseWhateverComesNextIsGivenOut() throws {
    let member = try stuckMember("--ack", "explicit", "--order", "any")
    #expect(try nextMember(2, "--ack", "explicit", "--order", "any") == ["b 1", "c 1"])
    member.stop()
  }

  @Test func whatTakesLongerThanTheDeadlineIsGivenToAnother() throws {
    let member = try stuckMember("--ack", "explicit", "--deadline", "100ms")
    let other = try broker.sluice(
      "sub", "jobs", "--group", "g", "--ack", "explicit", "--deadline", "100ms", "--format",
      "{payload} {deliveries}")
    try eventually("the first record; there is \(other.standardOutput.text)") {
      other.standardOutput.lines.contains { $0.hasPrefix("a ") && $0 != "a 1" }
    }
    other.stop()
    member.stop()
  }

  @Test func acknowledgedByItselfARecordIsDoneWhenItIsSent() throws {
    let member = try stuckMember("--ack", "auto")
    #expect(try cursor("g")?["outstanding"] as? Int == 0)
    member.signal(SIGKILL)
    #expect(try nextMember(2) == ["b 1", "c 1"])
  }

  @Test func acknowledgedExplicitlyItIsDoneWhenItIsPrinted() throws {
    let member = try stuckMember("--ack", "explicit")
    #expect(try cursor("g")?["outstanding"] as? Int == 1)
    member.signal(SIGKILL)
    #expect(try nextMember(3, "--ack", "explicit").sorted() == ["a 2", "b 1", "c 1"])
  }

  @Test func whatIsRefusedOnceTooOftenIsPutAside() throws {
    let member = try broker.sluice(
      "sub", "jobs", "--group", "g", "--from", "earliest", "--ack", "explicit", "--deliveries", "2",
      "--dead-letters", "dead", "--exec", "echo $SLUICE_DELIVERIES; exit 1")
    let letters = try broker.run("sub", "dead", "--count", "3", "--format", "{payload}")
    #expect(letters.standardOutput.lines.sorted() == ["a", "b", "c"])
    try eventually("each was tried twice") {
      member.standardOutput.lines.sorted() == ["1", "1", "1", "2", "2", "2"]
    }
    member.stop()
  }

  @Test func aCursorMovesBehindWhatIsPrintedOrBehindWhatHasCome() throws {
    func start(_ cursor: String, _ options: String...) throws -> ChildProcess {
      let process = try ChildProcess.sluice(
        ["sub", "jobs", "--cursor", cursor, "--exec", "cat; \(work.text)"] + options, server: broker.address)
      try process.standardOutput.wait(bytes: 1)
      return process
    }
    let members = [try start("printed"), try start("also", "--commit", "printed")]
    let automatic = try start("auto", "--commit", "auto")
    try eventually("what has come is committed", every: 0.05) {
      try cursor("auto")?["next_offset"] as? Int == 1
    }
    for name in ["printed", "also"] { #expect(try cursor(name)?["next_offset"] as? Int == 0) }
    work.letGo()
    for name in ["printed", "also", "auto"] {
      try eventually("everything is committed", every: 0.05) { try cursor(name)?["next_offset"] as? Int == 3 }
    }
    for process in members + [automatic] { process.stop() }
  }

  @Test func aCursorIsMovedToAnyStart() throws {
    for (start, offset) in [
      ("new", 3), ("earliest", 0), ("last:2", 1), ("offset:2", 2), ("time:2001-02-03T04:05:06Z", 0),
      ("time:2199-01-01T00:00:00Z", 3),
    ] {
      #expect(try broker.run("cursor", "move", "jobs", "c", "--to", start).standardOutput.text == "")
      #expect(try cursor("c")?["next_offset"] as? Int == offset, "\(start)")
    }
  }
}
