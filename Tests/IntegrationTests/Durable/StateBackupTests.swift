import SluiceWire
import TestSupport
import Testing

/// The state of groups and of producers after a backup of one broker was imported into another.
@Suite(.onItsOwnThread) struct StateBackupTests {
  private let stage: DurableStage
  private let directory: TemporaryDirectory
  private let file: String
  private static let settings = JoinGroup.Settings(acknowledgement: .explicit, deliveries: 3)

  init() throws {
    stage = try DurableStage()
    directory = try TemporaryDirectory()
    file = directory.file("topics.sluice")
    try fill()
  }

  /// Publishes ten records of producer 77; the first two are trimmed. Of four records delivered to a member, two are done; the other two aren't, and one of
  /// these was delivered twice.
  private func fill() throws {
    let client = try stage.broker.client()
    var durable = TopicSettings()
    durable.storage = .durable
    try client.create("t", durable)
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 77)
    try client.publish((0..<10).map { "r\($0)" }, stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    client.close()
    try stage.sluice("topic", "trim", "t", "--before", "2")
    let member = try stage.broker.client()
    try member.join("t", "workers", stream: 2, from: .earliest, Self.settings, granted: 4)
    try member.receiveShare(4, stream: 2)
    try member.settle(.retry, 1, stream: 2)
    try member.roundTrip()
    try member.ask(5, stream: 2)
    try member.receiveShare(5, stream: 2)
    #expect(member.members[2]!.texts == ["r2", "r3", "r4", "r5", "r3"])
    try member.settle(.acknowledge, 0, 2, stream: 2)
    try member.roundTrip()
    member.close()
    try eventually("the records are taken back") {
      let groups = try stage.broker.client().listCursors(of: "t", limit: 10).cursors
      return groups.map(\.members) == [0] && groups.map(\.outstanding) == [0]
    }
  }

  /// - Parameter origin: the offset in the first broker of the second broker's first record.
  private func check(_ broker: BrokerProcess, origin: UInt64, _ why: String) throws {
    let member = try broker.client()
    try member.join("t", "workers", stream: 2, Self.settings, granted: 100)
    try member.receiveShare(6, stream: 2)
    try member.roundTrip()
    let records = member.members[2]!.records.sorted { $0.offset < $1.offset }
    #expect(records.map(\.text) == ["r3", "r5", "r6", "r7", "r8", "r9"], "\(why)")
    #expect(records.map { $0.offset + origin } == [3, 5, 6, 7, 8, 9], "\(why)")
    #expect(records.map(\.delivery) == [3, 2, 1, 1, 1, 1], "\(why)")
    try member.settle(.acknowledge, 0, 1, 2, 3, 4, 5, stream: 2)
    try member.roundTrip()

    // The producer resumes with its last four records, which the topic already has; the next one is published.
    let producer = try broker.client()
    try producer.openPublication("t", stream: 1, acknowledgement: .durable, producer: 77, from: 6)
    #expect(producer.publications[1]!.sent == 10, "\(why)")
    try producer.publish(["r10"], stream: 1)
    try producer.receiveAcknowledgements(stream: 1)
    try member.receiveShare(7, stream: 2)
    #expect(member.members[2]!.texts.last == "r10", "\(why)")
    #expect(try broker.show("t").summary.nextOffset + origin == 11, "\(why)")
  }

  @Test func aBackupIsImportedAndRestored() throws {
    try stage.sluice("backup", file)
    try checkBoth("backup", imported: 0)
  }

  @Test func anExportIsImportedAndRestored() throws {
    // A running broker stores a group's state periodically.
    try stage.restart()
    try stage.sluice("store", "export", stage.data, file, "--quiet")
    try checkBoth("export", imported: 0)
  }

  private func checkBoth(_ why: String, imported origin: UInt64) throws {
    let data = directory.file("imported")
    try stage.sluice("store", "import", data, file, "--quiet")
    let imported = try BrokerProcess(options: ["--data", data])
    try check(imported, origin: origin, "\(why), imported")
    imported.process.stop()

    let restored = try BrokerProcess(options: ["--data", directory.file("restored")])
    defer { restored.process.stop() }
    let run = try restored.run("restore", file)
    #expect(run.standardError.text.contains("1 group, 1 producer"), "\(run.messages)")
    try check(restored, origin: 2, "\(why), restored")
    // Repeating it changes nothing, and doesn't duplicate the group.
    _ = try restored.run("restore", file, "--resume", "--quiet")
    let groups = try restored.client().listCursors(of: "t", limit: 10).cursors
    #expect(groups.map(\.nextOffset) == [8])
  }

  @Test func whatWasRestoredIsOnDisk() throws {
    try stage.sluice("backup", file)
    let data = directory.file("restored")
    let first = try BrokerProcess(options: ["--data", data])
    _ = try first.run("restore", file, "--quiet")
    first.process.signal(9)
    try first.process.waitForExit()
    let second = try BrokerProcess(options: ["--data", data])
    defer { second.process.stop() }
    try check(second, origin: 2, "killed")
  }

  @Test func manyProducersComeInPages() throws {
    let client = try stage.broker.client()
    for number in 1...5_000 as ClosedRange<UInt64> {
      try client.openPublication(
        "t", stream: UInt32(number), acknowledgement: .durable, producer: 1_000 + number, from: number)
      if number % 500 == 0 {
        try client.publish(["one"], stream: UInt32(number))
        try client.receiveAcknowledgements(stream: UInt32(number))
      }
    }
    try stage.sluice("backup", file)
    let restored = try BrokerProcess(options: ["--data", directory.file("restored")])
    defer { restored.process.stop() }
    let run = try restored.run("restore", file)
    #expect(run.standardError.text.contains("5,001 producers"), "\(run.messages)")
    let other = try restored.client()
    try other.openPublication("t", stream: 1, producer: 1_007, from: 0)
    try other.openPublication("t", stream: 2, producer: 6_000, from: 0)
    #expect(other.publications[1]!.sent == 7 && other.publications[2]!.sent == 5_001)
  }

  @Test func aGroupThatIsThereIsNotReplaced() throws {
    let client = try stage.broker.client()
    try client.send(StateList(topic: "t", kind: .group), stream: 1)
    let states = try client.answer(TopicStates.self, stream: 1)
    #expect(states.states.count == 1 && !states.more && states.nextOffset == 10)
    try client.send(StateRestore(topic: "t", kind: .group, origin: 0, states: states.states), stream: 2)
    try client.expectFault(.groupMismatch, stream: 2)
    // A value that isn't a group's state, and a state of another version, are denied as well.
    for value in [[], [9], states.states[0].value + [0]] as [[UInt8]] {
      let odd = StateEntry(key: Array("other".utf8), value: value)
      try client.send(StateRestore(topic: "t", kind: .group, origin: 0, states: [odd]), stream: 3)
      try client.expectFault(.unsupported, stream: 3)
    }
    try client.create("memory")
    try client.send(StateList(topic: "memory", kind: .producer), stream: 4)
    try client.expectFault(.unsupported, stream: 4)
  }
}
