import SluiceBroker
import SluiceCommand
import SluiceWire
import Synchronization

/// Writes the storage's events to the log.
///
/// Lines about topics that drop records are limited per second, since any number of topics may begin to drop at once.
final class StorageLog: Sendable {
  private let logger: Logger
  private let directory: String
  private let begin = ContinuousClock.now
  /// The budget of lines about topics that drop records.
  private let budget = Mutex(LineBudget<String>())

  /// Must be called before the store is opened, since it starts the measurement of the time.
  init(_ logger: Logger, directory: String) {
    self.logger = logger
    self.directory = directory
  }

  /// The most lines per second about topics that drop records; metrics and `sluice topic show` report all of them.
  private static let droppingLines = 20

  private func noteDropping(_ topic: String, _ limit: DroppedRecords.Cause) {
    let verdict = budget.withLock { $0.spend(on: "", atMost: Self.droppingLines, now: WallTime.now) }
    guard verdict.isWritten else { return }
    logger.log(
      .info, "a durable topic drops its oldest records by a limit; this is logged once",
      ["topic": .text(topic), "limit": .text(limit.name)])
  }

  /// From any thread.
  func note(_ event: StoreEvent) {
    switch event {
    case .opened(let topics, let bytes, let wasClosed):
      logger.log(
        wasClosed ? .info : .warning,
        wasClosed
          ? "storage opened"
          : "storage opened; the last broker didn't close it: what was acknowledged as durable is there, later records of topics whose sync isn't always may be lost",
        [
          "directory": .text(directory), "topics": .number(topics),
          "bytes": .number(bytes),
          "ms": .number((ContinuousClock.now - begin).wholeMilliseconds),
        ])
    case .failed(let message, let isFull):
      logger.log(
        .error,
        isFull
          ? "storage is full: publishers of durable topics wait; make room on the disk, delete topics, or start with a larger --storage-limit"
          : "storage fails: publishers of durable topics wait until it works again",
        ["directory": .text(directory), "cause": .text(message)])
    case .rejected(let topic, let message):
      logger.log(
        .error,
        "the store refuses a change of a topic for what is in it; the change is dropped, other topics go on",
        ["topic": .text(topic), "cause": .text(message)])
    case .waiting(let publishers, let bytes, let isFull, let milliseconds):
      logger.log(
        .error,
        isFull
          ? "storage is still full, and publishers of durable topics wait"
          : "storage still fails, and publishers of durable topics wait",
        [
          "directory": .text(directory), "publishers": .number(publishers),
          "bytes": .number(bytes), "ms": .number(milliseconds),
        ])
    case .dropping(let topic, let limit): noteDropping(topic, limit)
    case .fenced(let message):
      logger.log(
        .error, "another node stores these topics now; nothing more is stored of them here",
        ["cause": .text(message)])
    case .recovered: logger.log(.info, "storage takes records again", ["directory": .text(directory)])
    case .damaged(let topic, let from, let before):
      logger.log(
        .error, "stored records are damaged, and missing for subscribers; see sluice store verify",
        [
          "topic": .text(topic), "from": .number(from),
          "before": .number(before),
        ])
    case .wentBack(let topic, let from, let known):
      logger.log(
        .warning,
        "a client knows records that this store doesn't have: the store went back, by a backup, a copy or a crash; the client goes on where they part",
        ["topic": .text(topic), "from": .number(from), "before": .number(known)])
    case .lost(let topic, let message):
      logger.log(
        .error, "a part of what is stored can't be read; see sluice store verify",
        ["topic": .text(topic), "cause": .text(message)])
    case .closed(nil): logger.log(.info, "storage closed", ["directory": .text(directory)])
    case .closed(let message?):
      logger.log(
        .error, "storage wasn't closed in order", ["directory": .text(directory), "cause": .text(message)])
    }
  }
}
