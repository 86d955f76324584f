import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire

/// A program with the client library, on its own loop, that always reconnects.
// @unchecked: a simulation runs on one thread at a time.
class HistoryClient: @unchecked Sendable {
  let name: String
  let loop: SimulatedLoop
  private(set) var client: Client?
  private(set) var isUp = false
  private var watch: AnyCancellable?

  init(_ name: String, _ world: SimulatedWorld, seed: UInt64) {
    self.name = name
    loop = world.makeLoop(name: name)
    var options = ClientOptions()
    options.name = name
    options.keepalive = .seconds(1)
    options.connectTimeout = .seconds(2)
    options.seed = seed
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(1)
    policy.maximumDelay = .milliseconds(200)
    options.reconnect = policy
    let network = world.network
    loop.perform {
      Client.connect(to: DurableHost.address, options: options, network: network, loop: loop) {
        [weak self] in
        guard let self, case .success(let client) = $0 else { return }
        self.client = client
        watch = client.connectionState.sink { [weak self] state in
          if case .connected = state { self?.isUp = true } else { self?.isUp = false }
        }
        began(client)
      }
    }
  }

  func began(_ client: Client) {}

  func leave() { loop.perform { client?.close() } }
}

/// A subscriber's records of one topic, from an offset on without a gap.
struct HistoryJournal: Equatable {
  private(set) var start: UInt64?
  private(set) var records: [UInt64] = []
  /// How often the subscriber learned that records it had received are no longer part of the topic.
  private(set) var cuts = 0

  var end: UInt64? { start.map { $0 + UInt64(records.count) } }

  /// - Returns: an error if the record doesn't follow the last one, otherwise nil.
  mutating func append(_ number: UInt64, at offset: UInt64) -> String? {
    defer {
      if end == nil { start = offset }
      records.append(number)
    }
    return offset == end ?? offset ? nil : "offset \(offset) follows on \(end ?? 0) without a word"
  }

  mutating func cut(at offset: UInt64) {
    cuts += 1
    guard let start, offset > start else {
      (self.start, records) = (offset, [])
      return
    }
    records.removeLast(min(Int(clamping: (end ?? offset) - min(offset, end ?? offset)), records.count))
  }

  mutating func restart(at offset: UInt64) {
    cuts += 1
    (start, records) = (offset, [])
  }
}

/// Subscribes to a topic or a pattern, and keeps a journal of each topic.
final class HistorySubscriber: HistoryClient, @unchecked Sendable {
  private let plan: SubscriptionPlan
  /// Whether cuts are ignored; the oracle must notice that.
  private let isDeaf: Bool
  private(set) var journals: [String: HistoryJournal] = [:]
  private(set) var failures: [String] = []
  private var subscription: AnyCancellable?

  init(_ name: String, _ plan: SubscriptionPlan, _ world: SimulatedWorld, seed: UInt64, isDeaf: Bool) {
    self.plan = plan
    self.isDeaf = isDeaf
    super.init(name, world, seed: seed)
  }

  override func began(_ client: Client) {
    subscription = client.topic(plan).events.sink { [weak self] in
      self?.failures.append("ends with \($0)")
    } receiveValue: { [weak self] in
      self?.receive($0)
    }
  }

  private func receive(_ event: TopicEvent<TopicRecord>) {
    switch event {
    case .record(let record):
      let number = record.payload.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      let topic = record.topic
      if let wrong = journals[topic, default: HistoryJournal()].append(number, at: record.offset) {
        failures.append("\(topic): \(wrong)")
      }
    case .rewound(let next): changed(plan.topic, .rewound(nextOffset: next))
    case .restarted(let next): changed(plan.topic, .restarted(nextOffset: next))
    case .lagged(let missed, _): failures.append("lagged by \(missed)")
    case .topic(let name, let change): changed(name, change)
    case .live, .producers: break
    }
  }

  private func changed(_ topic: String, _ change: TopicChange) {
    switch change {
    case .rewound(let next): if !isDeaf { journals[topic, default: HistoryJournal()].cut(at: next) }
    case .restarted(let next): if !isDeaf { journals[topic, default: HistoryJournal()].restart(at: next) }
    case .lagged(let missed, _): failures.append("\(topic): lagged by \(missed)")
    case .deleted: journals[topic] = nil
    case .matched, .live, .finished, .failed: break
    }
  }
}

/// Publishes each number to a topic once.
final class HistoryProducer: HistoryClient, @unchecked Sendable {
  let topic: String
  private let settings: TopicSettings
  private let next: () -> UInt64
  private let pauses: ClosedRange<Duration>
  private var random: SeededRandom
  private var subject: TopicSubject?
  private var waiting = 0
  var isPaused = false
  /// The acknowledged numbers, each with the number of the store that was in use.
  private(set) var acknowledged: [(number: UInt64, store: Int)] = []
  var store = 0
  /// How many notices of lost acknowledged records this producer received.
  private(set) var notices = 0
  private(set) var failures: [String] = []
  private var watch: AnyCancellable?

  init(
    _ name: String, _ topic: String, _ settings: TopicSettings, _ world: SimulatedWorld, seed: UInt64,
    next: @escaping () -> UInt64
  ) {
    self.topic = topic
    self.settings = settings
    self.next = next
    random = SeededRandom(seed: seed &* 31)
    pauses = .milliseconds(2) ... .milliseconds(60)
    super.init(name, world, seed: seed)
  }

  var isIdle: Bool { waiting == 0 }

  override func began(_ client: Client) {
    watch = client.notices.sink { [weak self] _ in self?.notices += 1 }
    subject = client.subject(topic, settings: settings, acknowledgement: .durable)
    publish()
  }

  private func publish() {
    if !isPaused, waiting < 20, let subject {
      let number = next()
      waiting += 1
      subject.publish(Message(withUnsafeBytes(of: number) { Array($0) })) { [weak self] result in
        guard let self else { return }
        waiting -= 1
        switch result {
        case .success: acknowledged.append((number, store))
        case .failure(let error): failures.append("a record isn't published: \(error)")
        }
      }
    }
    _ = loop.schedule(after: random.next(in: pauses)) { [weak self] in self?.publish() }
  }
}
