import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// The orderly end of a client.
@Suite struct ShutdownTests {
  /// The result of a shutdown; nil while it lasts.
  private final class Outcome: Sendable {
    private let box = Box<Result<Void, ClientError>?>(nil)

    func complete(_ result: Result<Void, ClientError>) {
      #expect(box.value == nil, "a completion is called once")
      box.value = result
    }

    var isPending: Bool { box.value == nil }
    var isSuccess: Bool { if case .success = box.value { true } else { false } }
    var error: ClientError? { if case .failure(let error) = box.value { error } else { nil } }
  }

  // MARK: A broker that answers by script

  @Test func itWaitsForGrantsAndAcknowledgements() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(1)
    for text in ["a", "b"] { subject.send(Message(text)) }
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    #expect(broker.takeReceived().flatMap(\.payloads) == ["a"])
    broker.send(Demand(grantedThrough: 2), 1)
    #expect(broker.takeReceived().flatMap(\.payloads) == ["b"])
    #expect(outcome.isPending && client.failure == nil)
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.settle()
    #expect(outcome.isSuccess && client.failure?.code == .closed)
    #expect(broker.isOver)
  }

  @Test func itClosesAtItsDeadline() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(1)
    for text in ["a", "b"] { subject.send(Message(text)) }
    let outcome = Outcome()
    client.shutdown(within: .seconds(3), completion: outcome.complete)
    broker.world.run(for: .milliseconds(2_900))
    #expect(outcome.isPending && client.failure == nil)
    broker.world.run(for: .milliseconds(200))
    #expect(outcome.error?.code == .flushTimeout && outcome.error?.topic == "t")
    #expect(client.failure?.code == .closed)
  }

  @Test func itClosesAtItsDeadlineWhenTheBrokerIsSilent() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    broker.answersPings = false
    let outcome = Outcome()
    client.shutdown(within: .milliseconds(500), completion: outcome.complete)
    broker.world.run(for: .milliseconds(450))
    #expect(outcome.isPending)
    broker.world.run(for: .milliseconds(100))
    #expect(outcome.error?.code == .flushTimeout)
  }

  @Test func aBrokerThatIsLostBeforeItConfirmsIsReported() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    broker.answersPings = false
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    broker.world.run(for: .seconds(5))
    #expect(outcome.error?.code == .keepaliveTimeout)
  }

  @Test func aPublicationThatFailsMeanwhileIsReported() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(1)
    subject.send("a")
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    broker.send(Fault(code: .topicDeleted, message: "it is gone"), 1)
    broker.settle()
    #expect(outcome.error?.code == .topicDeleted)
  }

  @Test func allCallersGetTheSame() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(1)
    subject.send("a")
    let (first, second, third) = (Outcome(), Outcome(), Outcome())
    client.shutdown(completion: first.complete)
    client.shutdown(within: .zero, completion: second.complete)
    broker.settle()
    #expect(first.isPending && second.isPending)
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.settle()
    #expect(first.isSuccess && second.isSuccess)
    client.shutdown(completion: third.complete)
    broker.settle()
    #expect(third.isSuccess)
  }

  @Test func aClientThatIsClosedMeanwhileReportsIt() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(1)
    subject.send("a")
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    client.close()
    broker.settle()
    #expect(outcome.error?.code == .closed)
  }

  // MARK: With a broker

  @Test func everythingIsThere() throws {
    let stage = try Stage()
    let client = try stage.client()
    let (records, unacknowledged) = (client.subject("t"), client.subject("u", acknowledgement: .none))
    for number in 0..<5_000 {
      records.send(Message("\(number)"))
      unacknowledged.send(Message("\(number)"))
    }
    records.send(completion: .finished)
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    #expect(stage.world.run { !outcome.isPending })
    #expect(outcome.isSuccess)
    let observer = try stage.client("observer")
    for topic in ["t", "u"] {
      let info: TopicInfo = try stage.wait { observer.topicInfo(topic, completion: $0) }
      #expect(info.summary.nextOffset == 5_000 && (info.summary.ending != nil) == (topic == "t"))
    }
  }

  @Test func settlementsAreRead() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish(["a", "b"], to: "t", with: client)
    let outcome = Outcome()
    let received = Box(0)
    let members = client.group(
      "g", of: "t", options: GroupOptions(acknowledgement: .explicit), from: .earliest
    )
    .sink { _ in
    } receiveValue: { delivery in
      delivery.acknowledge()
      received.value += 1
      if received.value == 2 { client.shutdown(completion: outcome.complete) }
    }
    #expect(stage.world.run { !outcome.isPending })
    #expect(outcome.isSuccess)
    withExtendedLifetime(members) {}
    let observer = try stage.client("observer")
    let groups: [CursorInfo] = try stage.wait { observer.cursors(of: "t", completion: $0) }
    #expect(groups.map(\.nextOffset) == [2])
  }

  @Test func itWaitsThroughALostConnection() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    let subject = client.subject("t")
    let _: TopicSubject.Receipt = try stage.wait { subject.publish("a", completion: $0) }
    stage.reset()
    subject.send("b")
    let outcome = Outcome()
    client.shutdown(completion: outcome.complete)
    #expect(stage.world.run { !outcome.isPending })
    #expect(outcome.isSuccess)
    let observer = try stage.client("observer")
    let info: TopicInfo = try stage.wait { observer.topicInfo("t", completion: $0) }
    #expect(info.summary.nextOffset == 2)
  }

  // MARK: Tasks

  private struct Mistake: Error {}

  private func options() -> ClientOptions {
    var options = ClientOptions()
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
    return options
  }

  @Test func aScopeShutsItsClientDown() async throws {
    let setting = try await LoopbackSetting()
    let kept = Box<Client?>(nil)
    let count = try await Client.withConnection(to: setting.address, options: options()) { client in
      kept.value = client
      let subject = client.subject("t")
      for text in ["a", "b", "c"] { subject.send(Message(text)) }
      return 3
    }
    #expect(count == 3 && kept.value?.failure?.code == .closed)
    #expect(try await setting.client.topicInfo("t").summary.nextOffset == 3)
  }

  @Test func aScopeThatThrowsPublishesWhatItHasAccepted() async throws {
    let setting = try await LoopbackSetting()
    await #expect(throws: Mistake.self) {
      try await Client.withConnection(to: setting.address, options: options()) { client in
        client.subject("t").send("a")
        throw Mistake()
      }
    }
    #expect(try await setting.client.topicInfo("t").summary.nextOffset == 1)
  }

  @Test func aCancelledScopePublishesWhatItHasAccepted() async throws {
    let setting = try await LoopbackSetting()
    let (address, options) = (setting.address, options())
    let task = Task {
      try await Client.withConnection(to: address, options: options) { client in
        client.subject("t").send("a")
        try await Task.sleep(for: .seconds(3_600))
      }
    }
    while (try? await setting.client.topicInfo("t").summary.nextOffset) == nil { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await setting.client.topicInfo("t").summary.nextOffset == 1)
  }

  @Test func aServiceRunsUntilItsClientIsShutDown() async throws {
    let setting = try await LoopbackSetting()
    let client = try await setting.connect()
    let service = Task { try await client.run() }
    client.subject("t").send("a")
    try await client.shutdown()
    try await service.value
    // A client that is shut down already runs no longer.
    try await client.run()
    #expect(try await setting.client.topicInfo("t").summary.nextOffset == 1)
  }

  @Test func aServiceThatIsCancelledShutsItsClientDown() async throws {
    let setting = try await LoopbackSetting()
    let client = try await setting.connect()
    let subject = client.subject("t")
    subject.send("a")
    let service = Task { try await client.run() }
    service.cancel()
    try await service.value
    #expect(client.failure?.code == .closed && subject.acknowledgedCount == 1)
  }
}
