import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// A producer's behaviour while the broker's storage accepts nothing.
@Suite struct StorageTests {
  private let broker: ScriptedBroker
  private let client: Client
  private let states = Box<[String]>([])

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  private func watch(_ subject: TopicSubject) -> AnyCancellable {
    subject.state.sink { [states] _ in
      states.value.append("end")
    } receiveValue: { [states] state in
      switch state {
      case .active: states.value.append("active")
      case .waiting(_, let attempt, let cause): states.value.append("waiting \(attempt): \(cause.code)")
      }
    }
  }

  private func refuse(_ code: ErrorCode = .storageFull, stream: UInt32 = 1) {
    broker.send(Fault(code: code, message: "no room"), stream)
    broker.settle()
  }

  /// Waits for the client's next attempt.
  private func askedAgain() throws -> PublishOpen {
    _ = broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty }
    return try broker.takeOnly()
  }

  private func published() throws -> [String] {
    try broker.takeReceived().filter { $0.type == .publish }.map { frame in
      let header = try frame.body.withUnsafeBytes { try PublishHeader.decode($0).header }
      return "\(header.firstSequence): \(frame.payloads.joined(separator: " "))"
    }
  }

  @Test(arguments: [ErrorCode.storageFull, .storageFailed])
  func whatWasRefusedIsPublishedAgainWhenItCanBe(code: ErrorCode) throws {
    let subject = client.subject("t", acknowledgement: .durable)
    let watch = watch(subject)
    let first: PublishOpen = try broker.takeOnly()
    #expect(first.acknowledgement == .durable)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100), 1)
    for text in ["a", "b", "c"] { subject.send(Message(text)) }
    #expect(try published() == ["0: a b c"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    refuse(code)
    #expect(states.value == ["active", "waiting 1: \(ClientError.Code(code))"])
    subject.send(Message("d"))
    // The intervals between attempts increase.
    var times: [MonotonicTime] = []
    for _ in 0..<4 {
      let again = try askedAgain()
      #expect(again.producer == first.producer && again.firstSequence == 1)
      times.append(broker.world.now)
      refuse(code)
    }
    #expect(times[3] - times[2] > times[1] - times[0])
    _ = try askedAgain()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100, nextSequence: 1), 1)
    #expect(try published() == ["1: b c", "3: d"])
    // Success isn't confirmed yet.
    #expect(states.value.last == "waiting 5: \(ClientError.Code(code))")
    broker.send(Ack(through: 4, lastOffset: 3), 1)
    broker.settle()
    #expect(states.value.last == "active")
    #expect(subject.acknowledgedCount == 4)
    client.close()
    broker.settle()
    #expect(states.value.last == "end")
    _ = watch
  }

  @Test func theSourceIsNotAskedForMoreThanTheBufferHolds() throws {
    let subject = client.subject("t", buffer: .init(records: 10))
    let source = ManualSource()
    subject.send(subscription: source)
    try broker.open(1_000)
    source.send(through: subject)
    _ = broker.takeReceived()
    refuse()
    let asked = source.asked
    for _ in 0..<5 {
      _ = try askedAgain()
      refuse()
    }
    source.send(through: subject)
    broker.settle()
    #expect(source.asked <= asked + 10)
    let held = source.sent
    _ = try askedAgain()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 1_000, nextSequence: 0), 1)
    let texts = try published().flatMap { $0.split(separator: " ").dropFirst() }
    #expect(texts == (0..<held).map { "\($0)" })
  }

  @Test func aProducerThatWasNeverTakenWaitsToo() throws {
    let subject = client.subject("t")
    subject.send("a")
    let _: PublishOpen = try broker.takeOnly()
    refuse()
    _ = try askedAgain()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 1), 1)
    #expect(try published() == ["0: a"])
  }

  @Test func withoutAPolicyItFails() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    let failure = Box<ClientError?>(nil)
    subject.publish("a") { if case .failure(let error) = $0 { failure.value = error } }
    let _: PublishOpen = try broker.takeOnly()
    broker.send(Fault(code: .storageFull, message: "no room"), 1)
    broker.settle()
    #expect(failure.value?.code == .storageFull)
    #expect(client.failure == nil)
  }

  @Test func itGivesUpWhenThePolicyDoes() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.reconnect?.attempts = 3
    }
    let subject = client.subject("t")
    let failure = Box<ClientError?>(nil)
    subject.publish("a") { if case .failure(let error) = $0 { failure.value = error } }
    var openings = 0
    for _ in 0..<4 {
      _ = broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty }
      let _: PublishOpen = try broker.takeOnly()
      openings += 1
      broker.send(Fault(code: .storageFailed, message: "broken"), 1)
      broker.settle()
      if failure.value != nil { break }
    }
    #expect(openings == 4)
    #expect(failure.value?.code == .storageFailed)
  }

  /// As in `sluice pub`: an operator may take hours to make room.
  @Test func itWaitsForAsLongAsTheStorageIsFull() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.reconnect?.giveUpAfter = .seconds(60)
      $0.reconnect?.attempts = 3
      $0.reconnect?.limitsStorageWaits = false
    }
    let subject = client.subject("t")
    let failure = Box<ClientError?>(nil)
    subject.publish("a") { if case .failure(let error) = $0 { failure.value = error } }
    // The longest delay is 10 s.
    for _ in 0..<60 {
      _ = broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty }
      let _: PublishOpen = try broker.takeOnly()
      broker.send(Fault(code: .storageFull, message: "no room"), 1)
      broker.settle()
    }
    #expect(failure.value == nil)
  }

  @Test func aLostConnectionMeanwhileChangesNothing() throws {
    let subject = client.subject("t")
    try broker.open(10)
    subject.send("a")
    _ = try published()
    refuse()
    broker.breakOff()
    _ = try askedAgain()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    #expect(try published() == ["0: a"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.settle()
    #expect(subject.acknowledgedCount == 1)
  }

  @Test func theEndOfATopicWaitsToo() throws {
    let subject = client.subject("t")
    try broker.open(10)
    let isConfirmed = Box(false)
    subject.complete(.finished) { if case .success = $0 { isConfirmed.value = true } }
    #expect(broker.takeReceived().map(\.type) == [.complete])
    refuse()
    #expect(!isConfirmed.value)
    _ = try askedAgain()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    #expect(broker.takeReceived().map(\.type) == [.complete])
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(isConfirmed.value)
  }

  @Test func oneThatIsReleasedWithNothingToSayGoes() throws {
    var subject: TopicSubject? = client.subject("t")
    let watch = try watch(#require(subject))
    let _: PublishOpen = try broker.takeOnly()
    refuse()
    subject = nil
    broker.settle()
    #expect(states.value == ["active", "waiting 1: storage-full", "end"])
    broker.world.run(for: .seconds(60))
    #expect(broker.takeReceived().isEmpty)
    _ = watch
  }

  @Test func closingTheClientEndsThoseThatWait() throws {
    let subject = client.subject("t")
    let failure = Box<ClientError?>(nil)
    subject.publish("a") { if case .failure(let error) = $0 { failure.value = error } }
    let _: PublishOpen = try broker.takeOnly()
    refuse()
    client.close()
    broker.settle()
    #expect(failure.value?.code == .closed)
  }
}

/// Sends the requested numbers, from 0 on, when the test calls it.
private final class ManualSource: Subscription, @unchecked Sendable {
  private(set) var asked = 0
  private(set) var sent = 0

  func request(_ demand: Subscribers.Demand) { asked += demand.max ?? 0 }
  func cancel() {}

  func send(through subject: TopicSubject) {
    while sent < asked {
      subject.send(Message("\(sent)"))
      sent += 1
    }
  }
}
