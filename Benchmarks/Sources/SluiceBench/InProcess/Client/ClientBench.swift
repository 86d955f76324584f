/// The client library against a real broker over loopback: subscribing, publishing, round trips.
enum ClientBench {
  static func cases(_ settings: ClientBenchSettings) -> [MicroCase] {
    let stock = StockedTopic(settings)
    return SubscribeBench.cases(settings, stock) + PublishBench.cases(settings)
      + RoundTripBench.cases(settings, stock)
  }
}

/// A topic that was filled before, once, for all that replay it.
final class StockedTopic {
  static let name = "bench-stock"
  private let settings: ClientBenchSettings
  private var isStocked = false

  init(_ settings: ClientBenchSettings) {
    self.settings = settings
  }

  /// Fills the topic with `settings.records` records unless that was done.
  func stock() throws {
    if isStocked { return }
    let target = settings.target(topic: Self.name, keepsAll: true)
    let driver = SluiceDriver(target)
    try driver.prepare()
    let loop = try LoadLoop<SluiceDriver, CountingSink>(driver, target, publishers: 1)
    try loop.openPublishers()
    let records = UInt64(settings.records)
    var watch = ProgressWatch(patience: 10)
    while let done = loop.acknowledged, done < records, watch.goesOn(done, now: monotonicNanoseconds()) {
      try loop.turn(window: UInt64(settings.window), limit: records)
    }
    guard loop.acknowledged == records else { throw BenchError("filling the topic stood still") }
    loop.closeAll()
    isStocked = true
  }
}
