import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Clients that reconnect to a real broker in a simulated network.
@Suite struct ReturnTests {
  private func message(_ numbers: Range<Int>) -> [Message] { numbers.map { Message("\($0)") } }

  private func text(_ numbers: Range<Int>) -> [String] { numbers.map { "\($0)" } }

  @Test func subscribersAndProducersNoticeNothingOfALostConnection() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    let (greedy, slow) = (
      Recorder<TopicRecord>(), Recorder<TopicRecord>(initial: .max(1)) { _, _ in .max(1) }
    )
    client.topic("t", lag: .fail).subscribe(greedy)
    client.topic("t", lag: .fail, prefetch: .keepFull(7)).subscribe(slow)
    let subject = client.subject("t")
    for round in 0..<20 {
      for number in round * 50..<(round + 1) * 50 { subject.send(Message("\(number)")) }
      // In the middle of publishing.
      stage.world.run(for: .microseconds(50 + 37 * round))
      stage.reset()
      stage.world.run(for: .milliseconds(300))
    }
    try stage.wait(subject.flush(completion:))
    try stage.wait { subject.complete(.finished, completion: $0) }
    stage.world.run(for: .seconds(1))
    #expect(greedy.values == text(0..<1_000))
    #expect(slow.values == text(0..<1_000))
    #expect(greedy.completion == .finished && slow.completion == .finished)
    #expect(client.failure == nil)
  }

  @Test func anOrderlyRestartIsAPauseToo() throws {
    let stage = try Stage { $0.drainTime = .seconds(1) }
    let client = try stage.persistentClient()
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t").events.subscribe(recorder)
    try stage.publish(message(0..<3), to: "t", with: client)
    stage.broker.shutdown()
    stage.world.run(for: .seconds(3))
    #expect(client.failure == nil)
    try stage.restart()
    try stage.publish(message(3..<5), to: "t", with: client)
    stage.world.run(for: .seconds(1))
    #expect(
      recorder.history == [
        .subscription, .live, .value("0"), .value("1"), .value("2"), .restarted(0), .value("3"), .value("4"),
      ])
  }

  @Test func aCrashOfTheBrokerEndsWhoWantsNoGaps() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    let recorder = Recorder<TopicRecord>()
    client.topic("t", lag: .fail).subscribe(recorder)
    let subject = client.subject("t")
    for message in message(0..<3) { subject.send(message) }
    try stage.wait(subject.flush(completion:))
    stage.world.run(for: .seconds(1))
    stage.crash()
    for message in message(3..<5) { subject.send(message) }
    stage.world.run(for: .seconds(1))
    try stage.restart()
    try stage.wait(subject.flush(completion:))
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == text(0..<3))
    #expect(recorder.completion == .failure(.epochChanged))
    // The new epoch contains the records that the first one didn't acknowledge.
    let late = Recorder<TopicRecord>()
    client.topic("t").subscribe(late)
    stage.world.run(for: .seconds(1))
    #expect(late.values == text(3..<5))
  }

  @Test func anEndWhoseConfirmationIsLostIsConfirmedAfterwards() throws {
    // Resets at every moment of it.
    for delay in stride(from: 0, through: 600, by: 50) {
      let stage = try Stage()
      let client = try stage.persistentClient()
      let subject = client.subject("t")
      stage.world.run(for: .seconds(1))
      subject.send("a")
      let ended = Box<Result<Void, ClientError>?>(nil)
      subject.complete(.finished) { ended.value = $0 }
      stage.world.run(for: .microseconds(delay))
      stage.reset()
      stage.world.run(for: .seconds(1))
      #expect(throws: Never.self, "\(delay)") { try ended.value?.get() }
      #expect(ended.value != nil, "\(delay)")
      #expect(try stage.wait { client.topicInfo("t", completion: $0) }.summary.nextOffset == 1)
    }
  }

  @Test func whatUpstreamWasAskedForIsExactAcrossAnOutage() throws {
    let stage = try Stage { $0.limits.producerWindow = 10 }
    let client = try stage.persistentClient()
    let subject = client.subject("t", buffer: TopicSubject.Buffer(records: 10))
    let source = CountingSource(count: 500)
    let attachment = source.subscribe(subject)
    for _ in 0..<30 {
      stage.world.run(for: .milliseconds(3))
      stage.reset()
      stage.world.run(for: .milliseconds(200))
      #expect(source.given - Int(subject.acknowledgedCount) <= 30)
    }
    stage.world.run(for: .seconds(1))
    try stage.wait(subject.flush(completion:))
    #expect(source.given == 500)
    let late = Recorder<TopicRecord>()
    client.topic("t").subscribe(late)
    // After that many losses, the delay is long.
    #expect(stage.world.run(limit: .seconds(30)) { late.values.count == 500 })
    #expect(late.values == text(0..<500))
    _ = attachment
  }

  @Test func aSlowSubscriberHoldsUpNobodyAndNothing() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    let (slow, quick) = (Recorder<TopicRecord>(initial: .max(1)), Recorder<TopicRecord>())
    client.topic("t").subscribe(slow)
    client.topic("t").subscribe(quick)
    let filler = String(repeating: "x", count: 1_000)
    try stage.publish((0..<5_000).map { Message("\($0) \(filler)") }, to: "t", with: client)
    #expect(stage.world.run(limit: .seconds(60)) { quick.values.count == 5_000 })
    #expect(slow.values.count == 1)
    // It has got no more than it asked for, so there is nothing to keep.
    let shown = try stage.wait { client.topicInfo("t", completion: $0) }
    #expect(shown.subscriptions.map(\.sent).sorted() == [1, 5_000])
    stage.reset()
    stage.world.run(for: .seconds(1))
    slow.subscription?.request(.max(2))
    stage.world.run(for: .seconds(1))
    #expect(slow.values.map { $0.prefix(while: { $0 != " " }) } == ["0", "1", "2"])
  }

  @Test func theNextServerTakesOver() throws {
    let stage = try Stage()
    let other = SocketAddress.host("other", port: 1)
    var configuration = BrokerConfiguration()
    configuration.listen = [other]
    let loop = stage.world.makeLoop(name: "other")
    let second = try Broker(configuration, network: stage.world.network, group: LoopGroup([loop]))
    try second.start()
    let clientLoop = stage.world.makeLoop(name: "client")
    let client = try stage.wait {
      Client.connect(
        to: [stage.address, other], network: stage.world.network, loop: clientLoop, completion: $0)
    }
    let servers = Box<[SocketAddress]>([])
    let watch = client.connectionState.sink {
      if case .connected(let server) = $0 { servers.value.append(server) }
    }
    stage.crash()
    stage.world.run(for: .seconds(1))
    #expect(servers.value == [stage.address, other])
    #expect(client.failure == nil)
    _ = watch
  }

  @Test func aClientThatIsReleasedWhileItWaitsLeavesNothing() throws {
    let stage = try Stage()
    weak var core: ClientCore?
    let recorder = Recorder<TopicRecord>()
    do {
      let client = try stage.persistentClient()
      core = client.core
      client.topic("t").subscribe(recorder)
      let subject = client.subject("t")
      subject.send("a")
      stage.world.run(for: .seconds(1))
      stage.crash()
      stage.world.run(for: .seconds(1))
      #expect(client.failure == nil)
    }
    stage.world.run(for: .seconds(1))
    #expect(recorder.completion == .failure(.closed))
    #expect(core == nil)
  }
}

/// Delivers numbers on demand.
private final class CountingSource: Publisher, Subscription {
  typealias Output = Message
  typealias Failure = ClientError

  private let count: Int
  private(set) var given = 0
  private var demand = Subscribers.Demand.none
  private var downstream: AnySubscriber<Message, ClientError>?
  private var isGiving = false

  init(count: Int) { self.count = count }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    downstream = AnySubscriber(subscriber)
    subscriber.receive(subscription: self)
  }

  func request(_ more: Subscribers.Demand) {
    demand += more
    guard !isGiving else { return }
    isGiving = true
    while demand > .none, given < count, let downstream {
      demand -= 1
      given += 1
      demand += downstream.receive(Message("\(given - 1)"))
    }
    isGiving = false
  }

  func cancel() { downstream = nil }
}
