import SluiceWire
import TestSupport
import Testing

/// A topic's limits of cursors, groups and time, and the limits stated at the start of a connection.
@Suite(.onItsOwnThread) struct TopicLimitTests {
  @Test func aGroupHasSoManyRecordsUnderWay() throws {
    let broker = try BrokerProcess("--group-records", "2")
    let client = try broker.client()
    try client.join("jobs", "g", stream: 1, JoinGroup.Settings(acknowledgement: .explicit))
    try client.publishAll(["a", "b", "c", "d"], to: "jobs")
    try client.receiveShare(2, stream: 1)
    try client.roundTrip()
    #expect(client.members[1]!.texts == ["a", "b"])
    try client.settle(.acknowledge, 0, stream: 1)
    try client.receiveShare(3, stream: 1)
    try client.roundTrip()
    #expect(client.members[1]!.texts == ["a", "b", "c"])
  }

  @Test func aCursorThatNobodyUsesIsForgottenInTime() throws {
    let (patient, forgetful) = (try BrokerProcess(), try BrokerProcess("--cursor-memory", "1ms"))
    for broker in [patient, forgetful] {
      let client = try broker.client()
      try client.subscribe("t", stream: 1, cursor: "c")
      try client.cancel(stream: 1)
    }
    let client = try forgetful.client()
    try eventually("it is forgotten") { try client.listCursors(of: "t").cursors.isEmpty }
    #expect(try patient.client().listCursors(of: "t").cursors.map(\.name) == ["c"])
  }

  @Test func aTopicThatNobodyUsesGoesInTime() throws {
    // Without the option, the topic at the first broker would be deleted first, since it is older.
    let patient = try BrokerProcess("--auto-delete", "on", "--auto-delete-time", "15m")
    let hasty = try BrokerProcess("--auto-delete", "on", "--auto-delete-time", "10ms")
    for broker in [patient, hasty] { try broker.client().create("t") }
    let client = try hasty.client()
    try eventually("it is gone") { try client.list(limit: 1).topics.isEmpty }
    #expect(try patient.client().list(limit: 1).topics.map(\.topic) == ["t"])
  }

  @Test func whatHoldsForAConnectionIsToldInItsWelcome() throws {
    let broker = try BrokerProcess(
      "--keepalive", "70s", "--max-streams", "9", "--max-record", "2MiB", "--max-frame", "3MiB")
    let client = try broker.client()
    let welcome = try #require(client.welcome)
    #expect(welcome.keepalive == 70_000 && welcome.maximumStreams == 9)
    #expect(welcome.maximumRecord == 2 << 20 && welcome.maximumFrame == 3 << 20)
    try client.subscribe("t", stream: 9)
    try client.send(Subscribe(topic: "t", grantedThrough: 1), stream: 10)
    let fault = try client.receive("ERROR") { $0.type == .error }.decode(Fault.self)
    #expect(fault.code == .invalidStream && fault.message.contains("1...9"), "\(fault)")
    // A client may request less.
    #expect(try broker.client("hasty", keepalive: 60_000).welcome?.keepalive == 60_000)
  }
}
