import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO

/// The destination of records: standard output, or commands. Used on the loop.
protocol RecordSink: AnyObject {
  /// Accepts a record; the next `flush()` prints it at the latest.
  ///
  /// - Parameter deliveries: how many times the group has delivered it, this one included; nil without a group.
  func take(_ record: TopicRecord, deliveries: Int?)

  /// Passes on the accepted records, and waits if too many bytes are in flight. Returns the records that were printed during the call; `progress`
  /// reports the others later.
  func flush() -> Printed

  /// Drops records that aren't being printed, and later ones; calls `done` on the loop once no record is being printed.
  func abandon(_ done: @escaping @Sendable () -> Void)

  /// Called on the loop, some time after `flush()`.
  var progress: (Result<Printed, SinkFailure>) -> Void { get set }

  /// Why a `flush()` has failed; nil if none has. `progress` reports later failures.
  var failure: SinkFailure? { get }
}

extension RecordSink {
  /// Whether a signal to end is pending: waiting must stop then.
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
  /// Written bytes.
  var bytes: Int
}

/// Why a record can't be printed.
enum SinkFailure: Error {
  /// The reader of standard output is gone.
  case closedPipe
  /// The command for a record has failed; without an exit status if a signal ended it.
  case command(String, status: Int32?)
  case failed(String)
}

/// Records on standard output.
///
/// Writes that can't block are made on the loop: without a switch of threads, demand of one record at a time has the least latency. A thread makes
/// the others, so that a stopped reader doesn't block the loop, which answers the broker's keepalive.
// Unchecked: used on its loop; the thread runs only the work of `queue`.
final class StandardOutput: RecordSink, @unchecked Sendable {
  private struct Chunk: Sendable {
    var bytes: [UInt8]
    var records: Int
  }

  /// The bytes that may wait to be written before the loop blocks.
  private static let limit = 16 << 20
  /// The bytes that a ready pipe takes without blocking.
  private static let atomicSize = 4096

  var progress: (Result<Printed, SinkFailure>) -> Void = { _ in }
  private(set) var failure: SinkFailure?

  private let format: OutputFormat
  private let descriptor: Int32
  /// The name of the output in messages.
  private let name: String
  private let loop: EpollLoop
  private let neverBlocks: Bool
  private let isPipe: Bool
  private let isTerminal: Bool
  private var pending = Chunk(bytes: [], records: 0)
  private var queue: WorkQueue<Chunk>!

  init(
    _ format: OutputFormat, descriptor: Int32 = STDOUT_FILENO, name: String = "standard output",
    loop: EpollLoop
  ) {
    self.format = format
    self.name = name
    self.descriptor = descriptor
    self.loop = loop
    var status = stat()
    let type = unsafe fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
    isTerminal = type == S_IFCHR && isatty(descriptor) == 1
    neverBlocks = type == S_IFREG || (type == S_IFCHR && !isTerminal)
    isPipe = type == S_IFIFO || type == S_IFSOCK
    queue = WorkQueue(limit: Self.limit) { [unowned self] chunk in write(chunk) }
  }

  func take(_ record: TopicRecord, deliveries: Int?) {
    format.append(record, deliveries: deliveries, isShown: isTerminal, to: &pending.bytes)
    pending.records += 1
  }

  func flush() -> Printed {
    guard pending.records > 0 else { return .nothing }
    let printed = Printed(records: pending.records, bytes: pending.bytes.count)
    guard canWriteNow else {
      queue.add(pending, weight: pending.bytes.count) { Self.isInterrupted }
      pending = Chunk(bytes: [], records: 0)
      pending.bytes.reserveCapacity(min(printed.bytes, 1 << 20))
      return .nothing
    }
    let code = unsafe pending.bytes.withUnsafeBytes { unsafe Descriptor.writeAll($0, to: descriptor) }
    pending.bytes.removeAll(keepingCapacity: true)
    pending.records = 0
    guard code == 0 else {
      failure = failure(code)
      return .nothing
    }
    return printed
  }

  func abandon(_ done: @escaping @Sendable () -> Void) {
    pending = Chunk(bytes: [], records: 0)
    queue.close { [loop] in loop.execute(done) }
  }

  /// True once the pipe has no reader. A write would notice that only at the next record.
  var isClosed: Bool {
    guard isPipe else { return false }
    var state = pollfd(fd: descriptor, events: 0, revents: 0)
    return unsafe poll(&state, 1, 0) > 0 && Int32(state.revents) & (POLLERR | POLLHUP) != 0
  }

  private var canWriteNow: Bool {
    guard queue.isIdle else { return false }
    if neverBlocks { return true }
    guard pending.bytes.count <= Self.atomicSize else { return false }
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return unsafe poll(&state, 1, 0) > 0
  }

  /// On the queue's thread.
  private func write(_ chunk: Chunk) {
    let code = unsafe chunk.bytes.withUnsafeBytes { unsafe Descriptor.writeAll($0, to: descriptor) }
    let printed = Printed(records: chunk.records, bytes: chunk.bytes.count)
    loop.execute { [self] in progress(code == 0 ? .success(printed) : .failure(failure(code))) }
  }

  private func failure(_ code: Int32) -> SinkFailure {
    code == EPIPE ? .closedPipe : .failed("cannot write to \(name): \(Descriptor.reason(code))")
  }
}
