/// The client library against a real broker over loopback: subscribing, publishing, round trips.
enum ClientBench {
  static func cases(_ settings: ClientBenchSettings) -> [MicroCase] {
    let stock = StockedTopic(settings)
    return SubscribeBench.cases(settings, stock) + PublishBench.cases(settings)
      + RoundTripBench.cases(settings, stock)
  }
}

/// A topic that is filled once, for all cases that replay it.
final class StockedTopic {
  static let name = "bench-stock"
  private let settings: ClientBenchSettings
  private var isStocked = false

  init(_ settings: ClientBenchSettings) {
    self.settings = settings
  }

  /// Fills the topic with `settings.records` records, once.
  func stock() throws {
    if isStocked { return }
    let target = settings.target(topic: Self.name, keepsAll: true)
    let driver = SluiceDriver(target: target)
    try driver.prepare()
    let loop = try LoadLoop<SluiceDriver, CountingSink>(driver, target, publishers: 1)
    try loop.openPublishers()
    try loop.publish(
      UInt64(settings.records), window: UInt64(settings.window), patience: 10, "filling the topic")
    loop.closeAll()
    isStocked = true
  }
}

/// The settings of measurements of the client library.
struct ClientBenchSettings {
  /// The broker's port on 127.0.0.1.
  var port: UInt16
  /// The broker's process, for its CPU time.
  var server: ServerProcess?
  /// Payload bytes.
  var size: Int
  /// Records per run.
  var records: Int

  init(_ arguments: inout Arguments) throws {
    port = UInt16(try arguments.integer("port", in: 1...65_535) ?? 0)
    server = try arguments.integer("server-pid", in: 1...4_194_304).map { ServerProcess(pid: Int32($0)) }
    size = try arguments.integer("size", in: 16...1_000_000) ?? 128
    records = try arguments.integer("records", in: 100...1_000_000_000) ?? 2_000_000
  }

  /// Returns the settings for a launched server; unchanged settings without one.
  func against(_ server: LaunchedServer?) -> Self {
    guard let server else { return self }
    var settings = self
    settings.port = server.port
    settings.server = server.process
    return settings
  }

  var address: String { "127.0.0.1:\(port)" }

  /// The target of the publishers and raw subscribers of `sluice-bench load`.
  ///
  /// - Parameter keepsAll: whether the topic keeps all records, or only the last 64 MiB.
  func target(topic: String, keepsAll: Bool) -> LoadTarget {
    LoadTarget(
      port: port, topic: topic, size: size, batch: min(max(65_536 / (size + 16), 4), 2048), subscribers: 1,
      retainedBytes: keepsAll ? nil : 0)
  }

  /// The most records in flight to a live subscriber.
  var window: Int { min(max(2_097_152 / size, 256), 16_384) }
}

extension Reading {
  /// The cost and the rates of a client that has handled that many records.
  ///
  /// - Parameters:
  ///   - cpu: the client's CPU time, in nanoseconds.
  ///   - wall: the elapsed time in nanoseconds.
  static func client(_ records: Int, cpu: Double, wall: Double) -> [Reading] {
    let (count, cost) = (Double(records), cpu / Double(records))
    return [Reading(.client, cost), Reading(.perCore, 1e9 / cost), Reading(.wall, count / wall * 1e9)]
  }

  /// - Parameter cpu: the broker's CPU time, in nanoseconds; nil if it isn't known.
  static func broker(_ records: Int, cpu: Double?) -> [Reading] {
    cpu.map { [Reading(.broker, $0 / Double(records))] } ?? []
  }
}

extension Column {
  static let client = Column("client ns/record")
  static let caller = Column("of it the caller")
  static let broker = Column("broker ns/record")
  static let perCore = Column("records/s of client CPU", .count)
  static let wall = Column("records/s", .count)
}
