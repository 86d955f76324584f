/// What the client library is measured with.
struct ClientBenchSettings {
  /// The broker's, on 127.0.0.1.
  var port: UInt16
  /// For its CPU time.
  var server: ServerProcess?
  /// Payload bytes.
  var size: Int
  /// Of a run.
  var records: Int

  init(_ arguments: inout Arguments) throws {
    port = UInt16(try arguments.integer("port", in: 1...65_535) ?? 0)
    server = try arguments.integer("server-pid", in: 1...4_194_304).map { ServerProcess(pid: Int32($0)) }
    size = try arguments.integer("size", in: 16...1_000_000) ?? 128
    records = try arguments.integer("records", in: 100...1_000_000_000) ?? 2_000_000
  }

  /// The same with a server that was launched, if one was.
  func against(_ server: LaunchedServer?) -> Self {
    guard let server else { return self }
    var settings = self
    settings.port = server.port
    settings.server = server.process
    return settings
  }

  var address: String { "127.0.0.1:\(port)" }

  /// As `sluice-bench load` would have it, for its publishers and raw subscribers.
  ///
  /// - Parameter keepsAll: whether the topic keeps everything, or only the last 64 MiB.
  func target(topic: String, keepsAll: Bool) -> LoadTarget {
    LoadTarget(
      port: port, topic: topic, size: size, batch: min(max(65_536 / (size + 16), 4), 2048), subscribers: 1,
      retainedBytes: keepsAll ? nil : 0)
  }

  /// Records that may be on their way to a live subscriber.
  var window: Int { min(max(2_097_152 / size, 256), 16_384) }
}

extension Column {
  static let client = Column("client ns/record")
  static let caller = Column("of it the caller")
  static let broker = Column("broker ns/record")
  static let perCore = Column("records/s of client CPU", .count)
  static let wall = Column("records/s", .count)
}
