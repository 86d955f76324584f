import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// CONNECTION_LIST, CONNECTION_CLOSE and BROKER_SHOW: their replies and effects, the permissions they need, and their audit lines.
@Suite struct BrokerRequestTests {
  private final class Audit: Sendable {
    let events = Mutex<[BrokerEvent]>([])
  }

  private let audit = Audit()
  private let small: SmallWorld

  init() throws {
    let audit = audit
    small = try SmallWorld(
      brokerLoops: 3, rules: ["root": "all >", "some": "all p.> admin p.> subscribe >", "admin": "admin >"]
    ) {
      $0.report = { event in audit.events.withLock { $0.append(event) } }
    }
  }

  private func connections(_ client: ScriptedClient) throws -> [ConnectionInfo] {
    var all: [ConnectionInfo] = []
    while true {
      let answer = client.ask(
        ConnectionList(after: all.last?.connection ?? 0, limit: 1000), stream: 1, in: small)
      let page = try #require(answer.last).decoded(Connections.self)
      #expect(page.connections.count <= 50)
      all += page.connections
      if !page.more { return all }
    }
  }

  private var administered: [(action: BrokerEvent.Administration, client: String, refusal: ErrorCode?)] {
    audit.events.withLock { events in
      events.compactMap {
        guard case .administered(let client, let action, _, let refusal) = $0 else { return nil }
        return (action, client.identity, refusal?.code)
      }
    }
  }

  @Test func connectionsOfAllLoopsAreListedInPages() throws {
    let root = small.connect(as: "root")
    let others = (0..<120).map { _ in small.connect(as: "some") }
    others[3].send(Subscribe(topic: "p.t", grantedThrough: 1), stream: 1)
    others[3].send(PublishOpen(topic: "p.t", acknowledgement: .none), stream: 2)
    small.settle()
    let all = try connections(root)
    #expect(all.count == 121)
    #expect(zip(all, all.dropFirst()).allSatisfy { $0.connection < $1.connection })
    #expect(all.count { $0.identity == "some" } == 120 && all.count { $0.identity == "root" } == 1)
    let busy = all.filter { $0.subscriptions == 1 && $0.publications == 1 }
    #expect(busy.count == 1 && busy[0].client == "test" && busy[0].security.isEmpty && !busy[0].peer.isEmpty)
  }

  @Test func theTrafficOfEachConnectionIsTold() throws {
    let (root, reader, writer) = (
      small.connect(as: "root"), small.connect(as: "some"), small.connect(as: "some")
    )
    reader.send(Subscribe(topic: "p.t", grantedThrough: 1_000), stream: 1)
    writer.send(PublishOpen(topic: "p.t", acknowledgement: .none), stream: 1)
    small.settle()
    let before = try connections(root)
    for number in 0..<3 {
      writer.publish([[UInt8](repeating: 7, count: 100_000)], from: UInt64(number), stream: 1)
    }
    small.settle()
    let after = try connections(root)
    func growth(_ index: Int, _ count: KeyPath<ConnectionInfo, UInt64>) -> UInt64 {
      after[index][keyPath: count] - before[index][keyPath: count]
    }
    let numbers = before.map { (publications: $0.publications, subscriptions: $0.subscriptions) }
    let producer = try #require(numbers.firstIndex { $0.publications == 1 })
    let subscriber = try #require(numbers.firstIndex { $0.subscriptions == 1 })
    #expect((300_000..<301_000).contains(growth(producer, \.received)) && growth(producer, \.sent) < 1_000)
    #expect(
      (300_000..<301_000).contains(growth(subscriber, \.sent)) && growth(subscriber, \.received) < 1_000)
    // Every byte was received on one of these connections.
    #expect(after.reduce(0) { $0 + Int($1.received) } == small.broker.metrics[.bytesReceived])
  }

  @Test func aConnectionIsClosedAndItsClientIsTold() throws {
    let (admin, some) = (small.connect(as: "admin"), small.connect(as: "some"))
    let victim = try #require(try connections(admin).first { $0.identity == "some" })
    let answer = admin.ask(ConnectionClose(connection: victim.connection), stream: 1, in: small)
    #expect(answer.last?.header.type == .done)
    #expect(try some.fault(on: 0)?.code == .closedByOperator)
    #expect(some.hasEnded)
    #expect(try connections(admin).count == 1)
    _ = admin.ask(ConnectionClose(connection: victim.connection), stream: 1, in: small)
    #expect(try admin.fault(on: 1)?.code == .unknownConnection)
    #expect(small.broker.metrics[.closedByOperators] == 1)
    let told = administered
    #expect(told.count == 2 && told.allSatisfy { $0.client == "admin" })
    #expect(told.map(\.action) == Array(repeating: .closeConnection(victim.connection), count: 2))
    #expect(told.map(\.refusal) == [nil, .unknownConnection])
  }

  @Test func aClientMayCloseItsOwnConnection() throws {
    let root = small.connect(as: "root")
    let own = try #require(try connections(root).first)
    _ = root.ask(ConnectionClose(connection: own.connection), stream: 1, in: small)
    #expect(try root.fault(on: 0)?.code == .closedByOperator && root.hasEnded)
    #expect(administered.count == 1)
  }

  @Test func onlyAClientThatAdministersEverythingMay() throws {
    let (some, root) = (small.connect(as: "some"), small.connect(as: "root"))
    let frames: [(UInt32, [UInt8])] = [
      (1, ConnectionList(limit: 10).encoded(stream: 1)),
      (2, ConnectionClose(connection: 2).encoded(stream: 2)),
      (3, BrokerShow().encoded(stream: 3)),
    ]
    for (stream, frame) in frames {
      some.send(frame)
      small.settle()
      #expect(try some.fault(on: stream)?.code == .permissionDenied)
    }
    #expect(!root.hasEnded && administered.isEmpty)
    let denied = audit.events.withLock { events in
      events.count {
        if case .denied(let client, "administer", ">") = $0 { client.identity == "some" } else { false }
      }
    }
    #expect(denied == 3 && small.broker.metrics[.deniedPermissions] == 3)
  }

  @Test func theBrokerTellsWhichTopicsAreStopped() throws {
    let root = small.connect(as: "root")
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 0
    settings.withoutSubscribers = .hold
    for number in 0..<30 {
      _ = root.ask(TopicCreate(topic: "p.\(number)", settings: settings), stream: 1, in: small)
      _ = root.ask(
        PublishOpen(topic: "p.\(number)", acknowledgement: .none), stream: UInt32(10 + number), in: small)
    }
    _ = root.ask(TopicCreate(topic: "free", settings: TopicSettings()), stream: 1, in: small)
    let info = try #require(root.ask(BrokerShow(), stream: 1, in: small).last).decoded(BrokerInfo.self)
    #expect(info.stopped == 30 && info.stoppedTopics.count == 20)
    #expect(info.stoppedTopics[0].topic == "p.0" && info.stoppedTopics[0].reason == .subscribers)
    #expect(
      zip(info.stoppedTopics, info.stoppedTopics.dropFirst()).allSatisfy {
        $0.milliseconds >= $1.milliseconds
      })
    #expect(info["topics"] == 31 && info["connections"] == 1 && info["publications"] == 30)
    #expect(info.uptime > 0 && info.storage.state == .none && info["nothing"] == nil)
    #expect(info.problems.isEmpty)
    // Persistent conditions are problems. A reply lists at most twenty, and the broker scans for them once a second, however many clients ask.
    small.world.run(for: .seconds(11))
    let later = try #require(root.ask(BrokerShow(), stream: 1, in: small).last).decoded(BrokerInfo.self)
    #expect(later.problems.count == 20 && later.problems.allSatisfy { $0.severity == .warning })
    #expect(later.problems.allSatisfy { $0.kind == "heldUp" && $0.topic.hasPrefix("p.") })
    // The count by kind includes all of them.
    #expect(later.problemKinds.map(\.kind) == ["heldUp"] && later.problemKinds.map(\.count) == [30])
    #expect(later.problemKinds[0].sentence == "Producers are blocked in 30 places.")
    #expect(later.problems[0].sentence.contains("The producers of p."))
    #expect(later.problems[0].since > 0 && later.problems[0].since + 10_000 <= later.time)
  }

  @Test func changesOfTopicsAreInTheAudit() throws {
    let (root, some) = (small.connect(as: "root"), small.connect(as: "some"))
    _ = root.ask(TopicCreate(topic: "q.t", settings: TopicSettings()), stream: 1, in: small)
    audit.events.withLock { $0 = [] }
    _ = root.ask(TopicSet(topic: "q.t", settings: TopicSettings(replayRecords: 1)), stream: 1, in: small)
    _ = root.ask(TopicTrim(topic: "q.t", .from(99)), stream: 1, in: small)
    _ = some.ask(TopicSet(topic: "q.t", settings: TopicSettings(replayRecords: 2)), stream: 1, in: small)
    #expect(try some.fault(on: 1)?.code == .permissionDenied)
    _ = some.ask(TopicTrim(topic: "q.t", .newest(0)), stream: 2, in: small)
    #expect(try some.fault(on: 2)?.code == .permissionDenied)
    let told = administered
    #expect(told.map(\.action) == [.setTopic, .trimTopic] && told.map(\.refusal) == [nil, .invalidSetting])
  }
}
