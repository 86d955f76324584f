import ReactiveCore
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceClient

/// Objects and streams are released, in the client and at the broker.
@Suite struct ReleaseTests {
  /// Weak references to objects that should be released.
  private final class Witness {
    private var references: [(name: String, object: () -> AnyObject?)] = []

    func watch<Object: AnyObject>(_ object: Object, _ name: String) {
      references.append((name, { [weak object] in object }))
    }

    /// The names of the objects that still exist.
    var alive: [String] { references.filter { $0.object() != nil }.map(\.name) }
  }

  private final class Token {}

  /// A sink that retains a token, which shows whether its closures are released.
  private func sink(_ topic: RemoteTopic<TopicRecord>, _ witness: Witness, _ name: String) -> AnyCancellable {
    let token = Token()
    witness.watch(token, name)
    return topic.eraseToAnyPublisher().sink { _ in
      withExtendedLifetime(token) {}
    } receiveValue: { _ in
      withExtendedLifetime(token) {}
    }
  }

  @Test func aCancelledSubscriptionIsGoneAtOnceHereAndSoonAtTheBroker() throws {
    let stage = try Stage()
    let client = try stage.client()
    let witness = Witness()
    var cancellable: AnyCancellable? = sink(client.topic("t"), witness, "subscriber")
    stage.world.run(for: .seconds(1))
    #expect(try stage.subscriptions("t", client) == 1)
    #expect(witness.alive == ["subscriber"])
    #expect(cancellable != nil)
    cancellable = nil
    #expect(witness.alive == [])
    // A round trip: 100 µs in each direction.
    stage.world.run(for: .microseconds(250))
    #expect(try stage.subscriptions("t", client) == 0)
  }

  @Test func aCompletedSubscriptionLetsGoOfItsSubscriber() throws {
    let stage = try Stage()
    let client = try stage.client()
    let witness = Witness()
    let cancellable = sink(client.topic("t"), witness, "subscriber")
    let subject = client.subject("t")
    try stage.wait { subject.complete(.finished, completion: $0) }
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
    _ = cancellable
  }

  @Test func aRefusedSubscriptionLetsGoOfItsSubscriber() throws {
    let stage = try Stage()
    let client = try stage.client()
    let witness = Witness()
    let cancellable = sink(client.topic("not a name"), witness, "subscriber")
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
    _ = cancellable
  }

  @Test func aSubscriberThatKeepsItsSubscriptionIsNoCycle() throws {
    let stage = try Stage()
    let client = try stage.client()
    let witness = Witness()
    do {
      let recorder = Recorder<TopicRecord>()
      witness.watch(recorder, "subscriber")
      client.topic("t").subscribe(recorder)
      stage.world.run(for: .seconds(1))
      recorder.subscription?.cancel()
    }
    #expect(witness.alive == [])
  }

  @Test func aReleasedClientTakesEverythingWithIt() throws {
    let stage = try Stage()
    let observer = try stage.client("observer")
    let witness = Witness()
    var cancellables: [AnyCancellable] = []
    do {
      let client = try stage.client()
      witness.watch(client, "client")
      witness.watch(client.core, "core")
      let subject = client.subject("t")
      witness.watch(subject, "subject")
      witness.watch(subject.publication, "publication")
      let source = PassthroughSubject<Message, ClientError>()
      witness.watch(source, "source")
      cancellables.append(source.subscribe(subject))
      cancellables.append(sink(client.topic("t"), witness, "subscriber"))
      cancellables.append(sink(client.topic("t", prefetch: .keepFull(10)), witness, "prefetching subscriber"))
      let recorder = Recorder<TopicRecord>(initial: .max(1))
      witness.watch(recorder, "demanding subscriber")
      client.topic("t", prefetch: .keepFull(10)).subscribe(recorder)
      let echo = Recorder<Message>()
      witness.watch(echo, "echo")
      subject.subscribe(echo)
      for number in 0..<50 { subject.send(Message("\(number)")) }
      stage.world.run(for: .seconds(1))
      #expect(recorder.values == ["0"])
      subject.publish("unanswered") { _ in withExtendedLifetime(echo) {} }
      client.topicInfo("t") { _ in withExtendedLifetime(echo) {} }
    }
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
    #expect(try stage.subscriptions("t", observer) == 0)
    let shown = try stage.wait { observer.topicInfo("t", completion: $0) }
    #expect(shown.summary.publications == 0)
    _ = cancellables
  }

  @Test func aReleasedSubjectIsGoneHereAndAtTheBroker() throws {
    let stage = try Stage()
    let client = try stage.client()
    let witness = Witness()
    do {
      let subject = client.subject("t")
      witness.watch(subject, "subject")
      witness.watch(subject.publication, "publication")
      subject.send("a")
    }
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
    let shown = try stage.wait { client.topicInfo("t", completion: $0) }
    #expect(shown.summary.publications == 0)
    #expect(shown.summary.nextOffset == 1)
  }

  @Test func aConnectionThatFailsIsLetGo() throws {
    let world = SimulatedWorld(seed: 1, conditions: .calm)
    let witness = Witness()
    do {
      let core = ClientCore(
        servers: [.host("missing", port: 1)], options: ClientOptions(), network: world.network,
        loop: world.loops[0])
      witness.watch(core, "core")
      core.connect { _ in }
    }
    world.run(for: .seconds(30))
    #expect(witness.alive == [])
  }

  @Test func whatWaitsForDemandGoesWithTheClient() throws {
    let stage = try Stage()
    let witness = Witness()
    do {
      let client = try stage.client()
      let recorder = Recorder<TopicRecord>(initial: .max(1))
      witness.watch(client.core, "core")
      witness.watch(recorder, "subscriber")
      client.topic("t", prefetch: .keepFull(9)).subscribe(recorder)
      try stage.publish(["a", "b", "c"], to: "t", with: client)
      stage.world.network.connections[0].reset()
      stage.world.run(for: .seconds(1))
      recorder.subscription?.request(.max(1))
      stage.world.run(for: .seconds(1))
      #expect(recorder.history == [.subscription, .value("a"), .value("b")])
      recorder.answer = { _, _ in .none }
    }
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
  }

  @Test func aLostConnectionIsLetGo() throws {
    let stage = try Stage()
    let witness = Witness()
    do {
      let client = try stage.client()
      witness.watch(client.core, "core")
      let recorder = Recorder<TopicRecord>()
      witness.watch(recorder, "subscriber")
      client.topic("t").subscribe(recorder)
      stage.world.run(for: .seconds(1))
      stage.world.network.connections[0].reset()
      stage.world.run(for: .seconds(1))
      #expect(recorder.completion == .failure(.cutOff))
    }
    stage.world.run(for: .seconds(1))
    #expect(witness.alive == [])
  }
}
