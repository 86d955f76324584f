import SluiceIO
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The same session at the owner and through another node: the client gets the same frames.
@Suite struct RelayComparisonTests {
  typealias Step = (ScriptedClient) -> Void

  /// Plays the steps with a client of the owner and with one of another node, and compares the frames on each stream.
  private func compare(
    storage: Bool = false, _ steps: [Step], configure: (inout BrokerConfiguration) -> Void = { _ in },
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let direct = try play(at: 0, storage, configure, steps)
    let relayed = try play(at: 1, storage, configure, steps)
    #expect(!direct.isEmpty && direct == relayed, sourceLocation: sourceLocation)
  }

  private func play(
    at node: Int, _ storage: Bool, _ configure: (inout BrokerConfiguration) -> Void, _ steps: [Step]
  ) throws -> [String] {
    let relay = try RelayWorld(
      storage: storage ? [StoreConfiguration(MemoryStore())] : [], configure: configure)
    let client = relay.connect(to: node)
    for step in steps {
      step(client)
      relay.settle()
    }
    #expect(!client.hasEnded)
    let streams = Set(client.frames.map(\.header.stream)).sorted()
    return streams.flatMap { stream in
      summary(client.frames(on: stream)).map { "\(stream): \($0)" }
    }
  }

  /// Frames as text. Adjacent batches are joined. For descriptions, which contain connections and times, only the type counts.
  private func summary(_ frames: [ScriptedClient.Received]) -> [String] {
    var lines: [String] = []
    var records: [ScriptedClient.Delivered] = []
    for frame in frames {
      records += frame.delivered
      if frame.header.type == .deliver { continue }
      if !records.isEmpty { lines.append("records \(records.map { "\($0.offset) \($0.payload)" })") }
      records = []
      lines.append(
        [.topicInfo, .cursors].contains(frame.header.type) ? "\(frame.header.type)" : "\(frame)")
    }
    if !records.isEmpty { lines.append("records \(records.map { "\($0.offset) \($0.payload)" })") }
    return lines
  }

  private func open(
    _ topic: String = "t", role: PublishOpen.Role = .producer, producer: UInt64 = 7,
    acknowledgement: PublishOpen.Acknowledgement = .received, stream: UInt32 = 1
  ) -> Step {
    {
      $0.send(
        PublishOpen(topic: topic, acknowledgement: acknowledgement, role: role, producer: producer),
        stream: stream)
    }
  }

  private func subscribe(
    _ topic: String = "t", granted: UInt64 = 100, start: Subscribe.Start = .earliest, cursor: String = "",
    filter: RecordFilter = RecordFilter(), stream: UInt32 = 2, ifMissing: Subscribe.IfMissing = .create
  ) -> Step {
    {
      $0.send(
        Subscribe(
          topic: topic, start: start, ifMissing: ifMissing, grantedThrough: granted, cursor: cursor,
          filter: filter,
          wantsProducers: true), stream: stream)
    }
  }

  private func publish(_ count: Int, from sequence: Int, stream: UInt32 = 1) -> Step {
    { $0.publish(count, from: sequence, stream: stream) }
  }

  private func send(_ frame: some Frame, stream: UInt32) -> Step { { $0.send(frame, stream: stream) } }

  // MARK: Records

  @Test func recordsDemandAndTheTopicsEnd() throws {
    try compare([
      open(), subscribe(granted: 3), publish(5, from: 0), send(Demand(grantedThrough: 4), stream: 2),
      send(Demand(grantedThrough: Credit.unlimited), stream: 2), publish(200, from: 5),
      send(Complete(.finished), stream: 1), subscribe(stream: 3),
    ])
  }

  @Test func aSubscriptionWithoutDemand() throws {
    try compare([
      open(), publish(3, from: 0), subscribe(granted: 0), send(Demand(grantedThrough: 1), stream: 2),
      send(Cancel(), stream: 2), subscribe(granted: 1, start: .last(1), stream: 2),
    ])
  }

  @Test func aFailureAndALatePublication() throws {
    try compare([
      open(), publish(3, from: 0), subscribe(),
      send(Complete(.failure(code: .producerFailure, message: "broken")), stream: 1), open(stream: 4),
      open(producer: 8, stream: 5),
    ])
  }

  @Test func aProducerThatLeavesGetsItsAcknowledgements() throws {
    try compare(
      storage: true,
      [
        open(acknowledgement: .durable),
        {
          $0.publish(20, from: 0, stream: 1)
          $0.send(Cancel(), stream: 1)
        }, open(acknowledgement: .durable, stream: 3), subscribe(),
        {
          $0.publish(2, from: 20, stream: 3)
          $0.send(Complete(.finished), stream: 3)
        },
      ]
    ) { $0.topicDefaults.storage = .durable }
  }

  @Test func aProducerIsFencedByAnother() throws {
    try compare([open(), publish(3, from: 0), open(stream: 2), publish(3, from: 3, stream: 2)])
  }

  @Test func aSourceIsToldOfTheConnection() throws {
    var settings = TopicSettings()
    settings.connect = .manual
    try compare([
      send(TopicCreate(topic: "t", settings: settings), stream: 9), open(role: .source),
      send(TopicConnect(topic: "t"), stream: 9), publish(2, from: 0), subscribe(),
      send(TopicDisconnect(topic: "t"), stream: 9),
    ])
  }

  @Test func aRequesterWithoutResponders() throws {
    try compare([
      open(role: .requester), subscribe(), open(role: .requester, stream: 3), publish(1, from: 0, stream: 3),
    ])
  }

  @Test func losslessProducersAreGrantedWhatTheSubscriberAsksFor() throws {
    var settings = TopicSettings()
    settings.flow = .lossless
    try compare([
      send(TopicCreate(topic: "t", settings: settings), stream: 9), subscribe(granted: 2), open(),
      send(Demand(grantedThrough: 5), stream: 2),
    ])
  }

  @Test func recordsThatWereDropped() throws {
    try compare([
      open(), publish(40, from: 0), publish(40, from: 40), subscribe(granted: 5, start: .offset(0)),
      send(Demand(grantedThrough: 50), stream: 2),
    ]) { $0.topicDefaults.replayRecords = 10 }
  }

  // MARK: Cursors and groups

  @Test func aDurableCursorIsCommittedBehindTheEnd() throws {
    try compare([
      open(), publish(6, from: 0), subscribe(cursor: "c"), send(Commit(nextOffset: 4), stream: 2),
      send(Complete(.finished), stream: 1), send(Commit(nextOffset: 6), stream: 2),
      subscribe(cursor: "c", stream: 3), send(CursorList(topic: "t", after: "", limit: 10), stream: 9),
      send(Commit(nextOffset: 6), stream: 2), send(CursorDelete(topic: "t", name: "c"), stream: 9),
      subscribe(cursor: "c", stream: 4), send(CursorMove(topic: "t", name: "c", to: .offset(2)), stream: 9),
      subscribe(stream: 2),
    ])
  }

  @Test func commitsWithoutACursorAreRefused() throws {
    try compare([subscribe(), send(Commit(nextOffset: 0), stream: 2), subscribe(stream: 2)])
  }

  @Test func membersSettleAndAreGivenRecordsAgain() throws {
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    func join(_ stream: UInt32) -> Step {
      send(
        JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 4),
        stream: stream)
    }
    try compare([
      open(), join(2), publish(4, from: 0),
      send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 2), stream: 2),
      join(3), send(Cancel(), stream: 2),
    ])
  }

  // MARK: Requests and errors

  @Test func requests() throws {
    var change = TopicSettings()
    change.replayRecords = 3
    try compare([
      send(TopicShow(topic: "t"), stream: 1),
      send(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1),
      send(TopicShow(topic: "t"), stream: 1), send(TopicSet(topic: "t", settings: change), stream: 1),
      send(TopicTrim(topic: "t", .newest(0)), stream: 1), send(TopicDelete(topic: "t"), stream: 1),
      send(TopicDelete(topic: "t"), stream: 1), send(CursorList(topic: "t", after: "", limit: 1), stream: 1),
      subscribe(stream: 1, ifMissing: .fail), subscribe(ifMissing: .create),
      send(TopicDelete(topic: "t"), stream: 1),
    ])
  }

  @Test func violationsOfAStreamEndItAlone() throws {
    try compare([
      open(), { $0.publish(70_000, from: 0, size: 4, stream: 1) }, open(), publish(1, from: 5), subscribe(),
      send(Demand(grantedThrough: 0), stream: 2), subscribe(stream: 2),
      send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1), stream: 2), subscribe(stream: 3),
    ])
  }
}
