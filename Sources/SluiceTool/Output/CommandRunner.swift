import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO

/// Runs a shell command for every record, one after the other, with the payload on its standard input.
///
/// The command finds `SLUICE_TOPIC`, `SLUICE_OFFSET`, `SLUICE_TIME` and, if the record has a key, `SLUICE_KEY` in its environment. The first
/// one that fails ends it all.
// Unchecked: used on its loop; what the thread does is in `queue`.
final class CommandRunner: RecordSink, @unchecked Sendable {
  /// What may wait before the loop waits too, in bytes of payload.
  private static let limit = 16 << 20

  var progress: (Result<Printed, SinkFailure>) -> Void = { _ in }
  var failure: SinkFailure? { nil }

  private let loop: EpollLoop
  private var queue: WorkQueue<TopicRecord>!

  init(_ command: String, loop: EpollLoop) {
    self.loop = loop
    queue = WorkQueue(limit: Self.limit) { record in
      let result = ShellCommand(command, record).run()
      let printed = Printed(records: 1, bytes: record.count)
      loop.execute { [weak self] in
        self?.progress(result.map { _ in printed })
      }
    }
  }

  func take(_ record: TopicRecord) {
    queue.add(record, weight: record.count + 64) { Self.isInterrupted }
  }

  func flush() -> Printed { .nothing }

  func abandon(_ done: @escaping @Sendable () -> Void) {
    queue.close { [loop] in loop.execute(done) }
  }
}
