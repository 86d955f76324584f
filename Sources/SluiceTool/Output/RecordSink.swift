import Glibc
import SluiceClient

/// Where records go: standard output, or commands. Used on the loop.
protocol RecordSink: AnyObject {
  /// Takes a record over; it is printed by the next `flush()` at the latest.
  ///
  /// - Parameter deliveries: for which time a group delivers it; nil without a group.
  func take(_ record: TopicRecord, deliveries: Int?)

  /// Passes on what was taken, and waits if too much is on its way. Returns how many records were printed during the call; of the others
  /// `progress` tells later.
  func flush() -> Printed

  /// Drops what isn't being printed already, and what comes; calls `done` on the loop when nothing is being printed any more.
  func abandon(_ done: @escaping @Sendable () -> Void)

  /// Called on the loop, some time after `flush()`.
  var progress: (Result<Printed, SinkFailure>) -> Void { get set }

  /// Why a `flush()` has failed, if it did; `progress` tells of what fails later.
  var failure: SinkFailure? { get }
}

extension RecordSink {
  /// True when Ctrl-C waits to be noticed: the moment not to wait any longer.
  static var isInterrupted: Bool {
    var waiting = sigset_t()
    unsafe sigpending(&waiting)
    return unsafe sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1
  }
}

/// An amount of records that were printed.
struct Printed: Sendable {
  static let nothing = Printed(records: 0, bytes: 0)

  var records: Int
  /// As written.
  var bytes: Int
}

/// Why nothing more can be printed.
enum SinkFailure: Error {
  /// Whoever read standard output has gone, and wants no more.
  case closedPipe
  /// A command didn't want the record.
  case refused(String)
  case failed(String)
}
