import SluiceBroker

/// Tells of what happens to a broker in the log.
struct BrokerLog: Sendable {
  private let logger: Logger

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// From any thread.
  func note(_ event: BrokerEvent) {
    switch event {
    case .memoryReached(let used, let ceiling):
      logger.log(
        .warning,
        "memory is at its ceiling: producers of topics in memory wait until topics drop records or are deleted; or start with a larger --memory",
        ["used": .number(Int64(used)), "ceiling": .number(Int64(ceiling))])
    case .memoryLeft(let used, let ceiling):
      logger.log(
        .info, "there is memory again, and producers go on",
        ["used": .number(Int64(used)), "ceiling": .number(Int64(ceiling))])
    case .closedForBuffering(let connection, let client, let bytes):
      logger.log(
        .warning,
        "a connection was closed because all together had more waiting than --max-buffered allows, and it the most",
        [
          "connection": .number(Int64(clamping: connection)), "client": .text(client),
          "bytes": .number(Int64(bytes)),
        ])
    }
  }
}
