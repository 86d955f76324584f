import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO

/// Runs a shell command for every record, one after the other, with the payload on its standard input.
///
/// The command finds `SLUICE_TOPIC`, `SLUICE_OFFSET`, `SLUICE_TIME` and, if the record has a key, `SLUICE_KEY` in its environment; for
/// records of a group `SLUICE_DELIVERIES`, too.
// Unchecked: used on its loop; what the thread does is in `queue`.
final class CommandRunner: RecordSink, @unchecked Sendable {
  /// What may wait before the loop waits too, in bytes of payload.
  private static let limit = 16 << 20

  var progress: (Result<Printed, SinkFailure>) -> Void = { _ in }
  var failure: SinkFailure? { nil }

  private let loop: EpollLoop
  private var queue: WorkQueue<Job>!

  private struct Job: Sendable {
    var record: TopicRecord
    var deliveries: Int?
  }

  init(_ command: String, loop: EpollLoop) {
    self.loop = loop
    queue = WorkQueue(limit: Self.limit) { job in
      let result = ShellCommand(command, job.record, deliveries: job.deliveries).run()
      let printed = Printed(records: 1, bytes: job.record.count)
      loop.execute { [weak self] in
        self?.progress(result.map { _ in printed })
      }
    }
  }

  func take(_ record: TopicRecord, deliveries: Int?) {
    queue.add(Job(record: record, deliveries: deliveries), weight: record.count + 64) { Self.isInterrupted }
  }

  func flush() -> Printed { .nothing }

  func abandon(_ done: @escaping @Sendable () -> Void) {
    queue.close { [loop] in loop.execute(done) }
  }
}
