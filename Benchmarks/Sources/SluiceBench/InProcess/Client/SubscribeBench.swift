import ReactiveCore
import SluiceClient

/// Records delivered to subscribers: replayed from a topic that was filled before, and live.
enum SubscribeBench {
  /// Sends a topic's records to a meter. The subscription lasts as long as the returned object.
  typealias Attach = (RemoteTopic<TopicRecord>, RecordMeter) -> AnyCancellable

  static func cases(_ settings: ClientBenchSettings, _ stock: StockedTopic) -> [MicroCase] {
    let size = Format.bytes(Double(settings.size))
    let replay = "client, replay of \(Format.count(Double(settings.records))) records of \(size)"
    let live = "client, live, \(Format.count(Double(settings.records))) records of \(size)"
    let ways: [(String, Attach)] = [
      ("unlimited demand", { attach($0, $1, .unlimited, each: .none) }),
      (".max(1) returned a value", { attach($0, $1, .max(16_384), each: .max(1)) }),
      ("sink", sink), ("map, filter, AnyPublisher, sink", pipeline),
    ]
    var cases = ways.map { name, attach in
      MicroCase(replay, name) { _ in
        try stock.stock()
        return try self.replay(settings, attach)
      }
    }
    cases.append(
      MicroCase(replay, "raw socket and codec, for comparison") { _ in
        try stock.stock()
        return try rawReplay(settings)
      })
    cases += ways.prefix(3).map { name, attach in
      MicroCase(live, name) { _ in try self.live(settings, attach) }
    }
    return cases
  }

  // MARK: Subscribers

  private static func attach(
    _ topic: RemoteTopic<TopicRecord>, _ meter: RecordMeter, _ first: Subscribers.Demand,
    each: Subscribers.Demand
  ) -> AnyCancellable {
    let subscriber = MeteredSubscriber(meter, first, each: each)
    topic.subscribe(subscriber)
    return AnyCancellable { subscriber.cancel() }
  }

  private static func sink(_ topic: RemoteTopic<TopicRecord>, _ meter: RecordMeter) -> AnyCancellable {
    topic.sink(receiveCompletion: { _ in meter.ended() }, receiveValue: { meter.take($0) })
  }

  private static func pipeline(_ topic: RemoteTopic<TopicRecord>, _ meter: RecordMeter) -> AnyCancellable {
    topic
      .map { (record: $0, length: $0.count) }
      .filter { $0.length > 0 }
      .map(\.record)
      .eraseToAnyPublisher()
      .sink(receiveCompletion: { _ in meter.ended() }, receiveValue: { meter.take($0) })
  }

  // MARK: Runs

  private static func replay(_ settings: ClientBenchSettings, _ attach: Attach) throws -> [Reading] {
    try withClient(settings) { client in
      let meter = RecordMeter(total: settings.records)
      let start = Moment(server: settings.server)
      let cancellable = attach(client.topic(StockedTopic.name, from: .earliest), meter)
      try meter.wait()
      let spent = start.elapsed()
      cancellable.cancel()
      return meter.readings + Reading.broker(settings.records, cpu: spent.server)
    }
  }

  private static func live(_ settings: ClientBenchSettings, _ attach: Attach) throws -> [Reading] {
    let target = settings.target(topic: "bench-live", keepsAll: false)
    let driver = SluiceDriver(target: target)
    try driver.prepare()
    defer { try? driver.cleanUp() }
    let loop = try LoadLoop<SluiceDriver, CountingSink>(driver, target, publishers: 1)
    return try withClient(settings) { client in
      let meter = RecordMeter(total: settings.records)
      let cancellable = attach(client.topic(target.topic, from: .earliest, lag: .fail), meter)
      try loop.openPublishers()
      defer { loop.closeAll() }
      let start = Moment(server: settings.server)
      var watch = ProgressWatch(patience: 10)
      while !meter.isDone, watch.goesOn(UInt64(meter.count), now: monotonicNanoseconds()) {
        // Sends whole batches, at most a window ahead of the subscriber.
        let ahead = (meter.count + settings.window) / target.batch * target.batch
        try loop.turn(window: .max / 2, limit: UInt64(min(ahead, settings.records)), milliseconds: 1)
      }
      try meter.wait(seconds: 1)
      let spent = start.elapsed()
      cancellable.cancel()
      return meter.readings + Reading.broker(settings.records, cpu: spent.server)
    }
  }

  /// The same replay to the load's own subscriber, which shows the cost of the kernel and of the checks alone.
  private static func rawReplay(_ settings: ClientBenchSettings) throws -> [Reading] {
    let target = settings.target(topic: StockedTopic.name, keepsAll: true)
    let driver = SluiceDriver(target: target)
    let loop = try LoadLoop<SluiceDriver, CountingSink>(driver, target, publishers: 1)
    let begin = Moment(server: settings.server)
    try loop.openSubscriber()
    defer { loop.closeAll() }
    let start = Moment(server: nil)
    var watch = ProgressWatch(patience: 10)
    let records = settings.records
    try loop.deliver(UInt64(records), &watch) { try loop.handleEvents(milliseconds: 100) }
    let spent = start.elapsed()
    let broker = begin.elapsed().server
    guard loop.delivered == records else { throw BenchError("the raw replay stood still") }
    return Reading.client(records, cpu: spent.thread, wall: spent.wall) + Reading.broker(records, cpu: broker)
  }

  // MARK: Support

  static func withClient<Result>(
    _ settings: ClientBenchSettings, _ body: (Client) throws -> Result
  ) throws -> Result {
    let client = try Blocking.run { try await Client.connect(to: settings.address) }
    defer { client.close() }
    return try body(client)
  }
}

/// Requests `first` at the start, and `each` after every value.
// @unchecked: `subscription` is set before the first value and doesn't change after that; a subscription is safe from any thread.
private final class MeteredSubscriber: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private let meter: RecordMeter
  private let first: Subscribers.Demand
  private let each: Subscribers.Demand
  private var subscription: (any Subscription)?

  init(_ meter: RecordMeter, _ first: Subscribers.Demand, each: Subscribers.Demand) {
    self.meter = meter
    self.first = first
    self.each = each
  }

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    subscription.request(first)
  }

  func receive(_ input: TopicRecord) -> Subscribers.Demand {
    meter.take(input)
    return each
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    meter.ended()
  }

  func cancel() {
    subscription?.cancel()
  }
}
