import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

extension ShortStories {
  /// Subscribers to patterns that use the library, while topics are created and published to, and connections are lost.
  @Suite struct PatternSeedTests {
    @Test(arguments: Seeds.chosen(for: .patterns))
    func everyTopicIsHeardInOrderAndWhole(seed: UInt64) throws {
      let story = try PatternStory(seed: seed)
      let failures = try story.play()
      #expect(
        failures.isEmpty,
        """
        Seed \(seed) fails:
        \(failures.prefix(5).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "PatternSeedTests"))
        """)
    }
  }
}

/// A broker, a producer with a stable connection, and subscribers whose connections are lost.
private final class PatternStory {
  private let seed: UInt64
  private var random: SeededRandom
  private let world: SimulatedWorld
  private var brokerLoops: [SimulatedLoop] = []
  private var configuration = BrokerConfiguration()
  private let broker: Broker
  private let producer: Client
  private var subjects: [String: TopicSubject] = [:]
  /// The number of records published to each topic since the broker started.
  private var published: [String: Int] = [:]
  private var listeners: [PatternListener] = []
  private var failures: [String] = []

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 3)
    var conditions = SimulatedConditions()
    conditions.latency = .microseconds(10) ... .milliseconds(random.next(in: 1...5))
    conditions.bufferSize = random.next(in: 500...60_000)
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    configuration.listen = [.host("broker", port: 7420)]
    configuration.identity = seed | 1 << 63
    if random.oneIn(3) { configuration.topicDefaults.flow = .lossless }
    let loops = random.next(in: 1...3)
    brokerLoops = (0..<loops).map { [world] in world.makeLoop(name: "broker \($0)") }
    let broker = try Broker(configuration, network: world.network, group: LoopGroup(brokerLoops))
    try broker.start()
    self.broker = broker
    producer = try Self.connect("producer", world, seed: 1)
    for number in 0..<random.next(in: 1...3) {
      let client = try Self.connect("subscriber \(number)", world, seed: UInt64(number) + 2)
      let pattern = ["t.*", ">", "t.>", "*.1"][random.next(in: 0...3)]
      listeners.append(PatternListener(client, pattern, rounds: random.next(in: 0...6), world: world))
    }
  }

  private static func connect(_ name: String, _ world: SimulatedWorld, seed: UInt64) throws -> Client {
    var options = ClientOptions()
    options.name = name
    options.seed = seed
    options.keepalive = .seconds(2)
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(1)
    policy.maximumDelay = .milliseconds(200)
    options.reconnect = policy
    let result = Shared<Result<Client, ClientError>?>(nil)
    Client.connect(
      to: .host("broker", port: 7420), options: options, network: world.network,
      loop: world.makeLoop(name: name)
    ) { result.set($0) }
    _ = world.run(limit: .seconds(60)) { result.value != nil }
    return try #require(result.value).get()
  }

  func play() throws -> [String] {
    for _ in 0..<random.next(in: 20...60) {
      switch random.next(below: 8) {
      case 0, 1, 2, 3: publish()
      case 4: someConnection()?.reset()
      case 5:
        let connection = someConnection()
        connection?.cut()
        world.run(for: .milliseconds(random.next(in: 0...3_000)))
        connection?.heal()
      case 6: for listener in listeners { listener.ask() }
      default: world.run(for: .milliseconds(random.next(in: 0...50)))
      }
      world.run(for: .microseconds(random.next(in: 0...3_000)))
    }
    for listener in listeners { listener.askForEverything() }
    let isSettled = world.run(limit: .seconds(300)) {
      self.listeners.allSatisfy { $0.hasAll(self.published) }
    }
    if !isSettled { failures.append("something is missing: \(published) \(listeners.map(\.heard))") }
    // Wait until nothing more arrives.
    world.run(for: .seconds(5))
    for listener in listeners {
      failures += listener.failures
      for (topic, count) in listener.heard where published[topic] != count {
        failures.append("\(count) records of \(topic), of which \(published[topic] ?? 0) were published")
      }
      listener.cancel()
    }
    world.run(for: .seconds(10))
    let left = broker.core.registry.all.reduce(0) { $0 + $1.attached.subscriptions }
    if left > 0 { failures.append("\(left) subscriptions are left behind") }
    if broker.core.registry.watches > 0 { failures.append("a pattern is watched without a subscription") }
    return failures
  }

  private func someConnection() -> SimulatedConnection? {
    let standing = world.network.connections.filter { !$0.isOver }
    return standing.isEmpty ? nil : standing[random.next(in: 0...standing.count - 1)]
  }

  private func publish() {
    let topic = ["t.1", "t.2", "u.1", "t.\(random.next(below: 12))", "t.x.\(random.next(below: 3))"][
      random.next(in: 0...4)]
    let subject = subjects[topic] ?? producer.subject(topic)
    subjects[topic] = subject
    for _ in 0..<random.next(in: 1...20) {
      subject.send(Message("\(published[topic, default: 0])"))
      published[topic, default: 0] += 1
    }
  }
}

/// A subscriber to a pattern, which checks everything it receives.
private final class PatternListener: Subscriber {
  typealias Input = TopicEvent<TopicRecord>
  typealias Failure = ClientError

  private let client: Client
  private let pattern: TopicPattern
  /// How many records it requests at a time; 0 for unlimited.
  private let rounds: Int
  private let world: SimulatedWorld
  private var subscription: (any ReactiveCore.Subscription)?
  private var asked = 0
  private var received = 0
  private var isUnlimited = false
  private(set) var heard: [String: Int] = [:]
  private var isLive = false
  private(set) var failures: [String] = []

  init(_ client: Client, _ pattern: String, rounds: Int, world: SimulatedWorld) {
    self.client = client
    self.pattern = try! TopicPattern(pattern)
    self.rounds = rounds
    self.world = world
    client.topics(matching: pattern, lag: .fail).events.subscribe(self)
  }

  func receive(subscription: any ReactiveCore.Subscription) {
    self.subscription = subscription
    if rounds == 0 { askForEverything() } else { ask() }
  }

  func ask() {
    guard rounds > 0, !isUnlimited else { return }
    asked += rounds
    subscription?.request(.max(rounds))
  }

  func askForEverything() {
    isUnlimited = true
    subscription?.request(.unlimited)
  }

  func receive(_ event: TopicEvent<TopicRecord>) -> Subscribers.Demand {
    received += 1
    check(isUnlimited || received <= asked, "\(received) values where \(asked) were asked for")
    switch event {
    case .record(let record):
      check(pattern.matches(record.topic), "a record of \(record.topic)")
      let next = heard[record.topic, default: 0]
      check(
        record.offset == UInt64(next) && record.string == "\(next)",
        "record \(record.offset) of \(record.topic) where \(next) was next")
      heard[record.topic] = next + 1
    case .live:
      check(!isLive, "live twice")
      isLive = true
    case .topic(let name, .matched(let offset)):
      check(offset == 0 && heard[name] == nil, "\(name) is matched at \(offset)")
      heard[name] = 0
    case .topic(_, .live): break
    default: check(false, "\(event)")
    }
    guard rounds == 1, !isUnlimited else { return .none }
    asked += 1
    return .max(1)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    check(false, "it ends: \(completion)")
  }

  func cancel() {
    subscription?.cancel()
    subscription = nil
  }

  func hasAll(_ published: [String: Int]) -> Bool {
    published.allSatisfy { !pattern.matches($0.key) || heard[$0.key] == $0.value }
  }

  private func check(_ holds: Bool, _ what: String) {
    if !holds { failures.append("\(pattern): \(what)") }
  }
}
