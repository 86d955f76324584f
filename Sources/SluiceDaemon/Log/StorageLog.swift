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
      .info, "a durable topic drops its oldest records because of a limit; this is logged once",
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
          : "storage opened; the last broker didn't close it: all records acknowledged as durable are stored, later ones may be lost in topics whose sync isn't always",
        [
          "directory": .text(directory), "topics": .number(topics),
          "bytes": .number(bytes),
          "ms": .number((ContinuousClock.now - begin).wholeMilliseconds),
        ])
    case .failed(let message, let isFull):
      logger.log(
        .error,
        isFull
          ? "storage is full: publishing to durable topics is paused; delete or trim topics, free disk space, or raise --storage-limit"
          : "storage fails: publishing to durable topics is paused until it works again",
        ["directory": .text(directory), "cause": .text(message)])
    case .rejected(let topic, let message):
      logger.log(
        .error,
        "the store refuses a change of a topic; the change is dropped, and other topics aren't affected",
        ["topic": .text(topic), "cause": .text(message)])
    case .waiting(let publishers, let bytes, let isFull, let milliseconds):
      logger.log(
        .error,
        isFull
          ? "storage is still full: producers of durable topics are blocked"
          : "storage still fails: producers of durable topics are blocked",
        [
          "directory": .text(directory), "publishers": .number(publishers),
          "bytes": .number(bytes), "ms": .number(milliseconds),
        ])
    case .dropping(let topic, let limit): noteDropping(topic, limit)
    case .fenced(let message):
      logger.log(
        .error, "another node stores these topics now; this node has stopped storing them",
        ["cause": .text(message)])
    case .recovered: logger.log(.info, "storage takes records again", ["directory": .text(directory)])
    case .damaged(let topic, let from, let before):
      logger.log(
        .error, "stored records are damaged, and subscribers don't get them; see sluice store verify",
        [
          "topic": .text(topic), "from": .number(from),
          "before": .number(before),
        ])
    case .wentBack(let topic, let from, let known):
      logger.log(
        .warning,
        "the store has lost records that a client has received, by a crash or because it is an older copy; the client continues at the first of them",
        ["topic": .text(topic), "from": .number(from), "before": .number(known)])
    case .lost(let topic, let message):
      logger.log(
        .error, "a part of the store can't be read; see sluice store verify",
        ["topic": .text(topic), "cause": .text(message)])
    case .closed(nil): logger.log(.info, "storage closed", ["directory": .text(directory)])
    case .closed(let message?):
      logger.log(
        .error, "storage couldn't be closed properly",
        ["directory": .text(directory), "cause": .text(message)])
    }
  }
}
