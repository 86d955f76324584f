import Dispatch
import Glibc
import ReactiveCore
import SluiceClient
import Synchronization

/// The cost of subscriptions to patterns for other clients: the same measurements on a broker with thousands of them, and of topics, and on an empty broker.
enum PatternBench {
  /// The number of topics and requests to time one after another, in each run.
  private static let requests = 300

  /// - Parameters:
  ///   - plain: an empty broker.
  ///   - crowd: the patterns and topics on the other broker.
  static func cases(_ plain: ClientBenchSettings, _ crowd: PatternCrowd) -> [MicroCase] {
    let size = Format.bytes(Double(plain.size))
    let names = ("nothing else", "\(crowd.patterns) patterns and \(crowd.topics) topics")
    let both = [(plain, names.0), (crowd.settings, names.1)]
    func cases(_ table: String, _ measure: @escaping (ClientBenchSettings) throws -> [Reading]) -> [MicroCase]
    {
      both.map { settings, name in
        MicroCase("patterns, \(table)", name) { _ in
          try crowd.gather()
          return try measure(settings)
        }
      }
    }
    return cases("publishing records of \(size)") { settings in
      try PublishBench.measure(settings, settings.records) { subject, records in
        let payload = [UInt8](repeating: 0x61, count: settings.size)
        try payload.withUnsafeBytes { payload in
          for _ in 0..<records { while try !subject.enqueue(copying: payload) { usleep(100) } }
        }
      }
    }
      + cases("making a topic") { settings in
        try requests(settings) { client, number in
          try Blocking.run { _ = try await client.createTopic("bench.made.\(number)") }
        } after: { client, number in
          try Blocking.run { try await client.deleteTopic("bench.made.\(number)") }
        }
      }
      + cases("subscribing to one") { settings in
        try requests(settings) { client, number in
          try PatternCrowd.subscribe(client, to: ["bench.crowd.\(number).*"]).cancel()
        }
      } + [MicroCase("patterns, memory", "\(crowd.topics) topics in one pattern") { _ in try crowd.memory() }]
  }

  private static func requests(
    _ settings: ClientBenchSettings, _ body: (Client, Int) throws -> Void,
    after: (Client, Int) throws -> Void = { _, _ in }
  ) throws -> [Reading] {
    try SubscribeBench.withClient(settings) { client in
      let start = Moment(server: settings.server)
      for number in 0..<requests { try body(client, number) }
      let spent = start.elapsed()
      for number in 0..<requests { try after(client, number) }
      return [Reading(.microseconds, spent.wall / Double(requests) / 1e3)]
        + (spent.server.map { [Reading(.brokerMicroseconds, $0 / Double(requests) / 1e3)] } ?? [])
    }
  }
}

/// A broker with many subscriptions to patterns and many topics. Each pattern matches one topic.
final class PatternCrowd {
  let settings: ClientBenchSettings
  let patterns: Int
  let topics: Int
  /// The number of subscriptions per connection.
  private static let together = 2_500

  private var clients: [Client] = []
  private var isMeasured = false
  private var subscriptions: [AnyCancellable] = []

  init(_ settings: ClientBenchSettings, patterns: Int, topics: Int) {
    self.settings = settings
    self.patterns = patterns
    self.topics = topics
  }

  /// Subscribes and creates the topics, once.
  func gather() throws {
    guard clients.isEmpty else { return }
    for first in stride(from: 0, to: patterns, by: Self.together) {
      let client = try connect()
      let names = (first..<min(first + Self.together, patterns)).map { "bench.crowd.\($0).*" }
      subscriptions.append(try Self.subscribe(client, to: names))
    }
    let client = try connect()
    let topics = topics
    try Blocking.run {
      for number in 0..<topics { _ = try await client.createTopic("bench.crowd.\(number).a") }
    }
  }

  private func connect() throws -> Client {
    let client = try Blocking.run { [settings] in try await Client.connect(to: settings.address) }
    clients.append(client)
    return client
  }

  /// The memory that a subscription to all topics uses in the broker, per topic. Measured once, since later runs would find memory of the first one.
  func memory() throws -> [Reading] {
    try gather()
    guard let server = settings.server, !isMeasured else { return [] }
    isMeasured = true
    return try SubscribeBench.withClient(settings) { client in
      let before = server.residentBytes()
      let start = monotonicNanoseconds()
      let all = try Self.subscribe(client, to: (0..<4).map { _ in "bench.crowd.*.*" })
      let time = Double(monotonicNanoseconds() - start)
      let after = server.residentBytes()
      all.cancel()
      let count = Double(4 * topics)
      return [
        Reading(.bytes, Double(after - before) / count), Reading(.microsecondsEach, time / count / 1e3),
      ]
    }
  }

  /// Subscribes to patterns, and waits until all matching topics are live.
  static func subscribe(_ client: Client, to patterns: [String]) throws -> AnyCancellable {
    let left = Atomic(patterns.count)
    let done = DispatchSemaphore(value: 0)
    let subscriptions = patterns.map { pattern in
      client.topics(matching: pattern, from: .new).events.sink { _ in
      } receiveValue: { event in
        guard case .live = event else { return }
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done.signal() }
      }
    }
    guard done.wait(timeout: .now() + 120) == .success else {
      throw BenchError("subscriptions to patterns take longer than two minutes")
    }
    return AnyCancellable { for subscription in subscriptions { subscription.cancel() } }
  }
}

extension Column {
  fileprivate static let microseconds = Column("µs")
  fileprivate static let brokerMicroseconds = Column("broker CPU µs")
  fileprivate static let bytes = Column("broker bytes/topic")
  fileprivate static let microsecondsEach = Column("µs/topic")
}
