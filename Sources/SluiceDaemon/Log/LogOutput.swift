import Glibc
import SluiceCommand
import SluiceIO
import Synchronization

/// The output of the log. A thread of its own writes the lines, so that a slow or hanging reader blocks no other thread.
///
/// Lines wait in a ``LogBuffer``. Lines that don't fit are dropped, and their number is logged. The thread is started with the first line; if the system
/// can't start it, callers write their lines themselves. Lines are lost when the reader has exited or the disk is full. ``flush()`` must be called before
/// the process ends.
///
/// From any thread.
final class LogOutput: Sendable {
  static let standardError = LogOutput(STDERR_FILENO)

  private enum Writer {
    case notStarted
    case loop(EpollLoop)
    /// Callers write, since no thread could be started.
    case caller
  }

  private struct State {
    var buffer = LogBuffer()
    /// The format of the last line.
    var format = LogFormat.text
    var writer = Writer.notStarted
    /// Whether the thread is writing and will find further lines by itself.
    var isWriting = false
  }

  private let descriptor: Int32
  private let state = Mutex(State())

  /// Whether systemd's journal reads the lines. Each line then begins with its priority.
  let isJournal: Bool

  /// - Parameter descriptor: isn't closed by this object.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    // JOURNAL_STREAM contains the device and the inode of the stream that systemd has connected. A redirected stream has others.
    var status = stat()
    isJournal =
      unsafe fstat(descriptor, &status) == 0
      && Environment.value("JOURNAL_STREAM") == "\(status.st_dev):\(status.st_ino)"
  }

  deinit {
    state.withLock { if case .loop(let loop) = $0.writer { loop.stop() } }
  }

  /// The most bytes of waiting lines.
  var capacity: Int {
    get { state.withLock { $0.buffer.capacity } }
    set { state.withLock { $0.buffer.capacity = newValue } }
  }

  /// The number of lines dropped since the start.
  var droppedLines: Int { state.withLock { $0.buffer.droppedLines } }

  /// Queues a line, and returns at once.
  ///
  /// - Parameters:
  ///   - line: the line with its line break.
  ///   - format: the line's format, also for later notices of dropped lines; nil to keep the last format.
  func write(_ line: String, as format: LogFormat? = nil, isAudit: Bool = false) {
    let (idle, isDirect) = state.withLock { state -> (EpollLoop?, Bool) in
      if let format { state.format = format }
      guard let loop = Self.loop(&state) else { return (nil, true) }
      state.buffer.add(line, isAudit: isAudit)
      guard !state.isWriting else { return (nil, false) }
      state.isWriting = true
      return (loop, false)
    }
    if isDirect { Descriptor.write(line, to: descriptor) }
    idle?.execute { [self] in writeAll() }
  }

  /// The thread's loop; nil if no thread could be started.
  private static func loop(_ state: inout State) -> EpollLoop? {
    if case .notStarted = state.writer {
      state.writer = (try? EpollLoop.start(name: "log")).map { .loop($0) } ?? .caller
    }
    if case .loop(let loop) = state.writer { return loop }
    return nil
  }

  /// Writes all lines. On the thread.
  private func writeAll() {
    while true {
      let bytes = state.withLock { state in
        let bytes = state.buffer.take()
        state.isWriting = !bytes.isEmpty
        return bytes
      }
      if bytes.isEmpty { return }
      var start = 0
      while start < bytes.count {
        let end = LogBuffer.endOfPiece(in: bytes, from: start)
        unsafe bytes.withUnsafeBytes { bytes in
          _ = unsafe Descriptor.writeAll(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: descriptor)
        }
        state.withLock { state in
          let format = state.format
          state.buffer.wrote(end - start) { Self.notice(of: $0, as: format) }
        }
        start = end
      }
    }
  }

  private static func notice(of dropped: LogBuffer.Dropped, as format: LogFormat) -> String {
    var line = LogLine(
      time: WallTime.now, level: .warning,
      message: "log lines were dropped here: the log's reader was too slow; to keep more, raise --log-buffer",
      fields: [("lines", .number(dropped.lines))])
    if dropped.audits > 0 {
      line.fields += [("audits", .number(dropped.audits))]
      line.fields.insert(("audit", .flag(true)), at: 0)
    }
    return line.rendered(as: format)
  }

  /// Waits until all lines are written, for at most a second, since their reader may hang.
  func flush() {
    let deadline = EpollLoop.time + .seconds(1)
    while !state.withLock({ $0.buffer.isEmpty }), EpollLoop.time < deadline { usleep(1_000) }
  }
}

/// Lines that wait to be written, up to a number of bytes. Further lines are dropped, and counted.
///
/// Lines stay whole and in order. A quarter of the buffer is reserved for audit lines; other lines are dropped first. While the waiting audit lines take
/// less than a quarter, none of them is dropped. After a line was dropped, only audit lines are accepted until half of the buffer is free again. Then one
/// line reports how many were dropped.
struct LogBuffer {
  /// Lines that were dropped.
  struct Dropped: Hashable {
    var lines = 0
    /// The audit lines among them.
    var audits = 0
  }

  static let standardCapacity = 1 << 20

  /// In bytes.
  var capacity: Int
  /// Bytes that wait, or are being written.
  private(set) var used = 0
  /// The number of lines dropped since the start.
  private(set) var droppedLines = 0
  private var waiting: [UInt8] = []
  /// Dropped lines that weren't reported yet.
  private var dropped = Dropped()

  init(capacity: Int = standardCapacity) {
    self.capacity = capacity
  }

  var isEmpty: Bool { used == 0 }

  /// - Parameter line: the line with its line break.
  mutating func add(_ line: String, isAudit: Bool) {
    let count = line.utf8.count
    let room = isAudit ? capacity : dropped.lines > 0 ? 0 : capacity - capacity / 4
    // A line that is longer than the buffer is written if no other line waits.
    guard used == 0 || count <= room - used else {
      dropped.lines += 1
      dropped.audits += isAudit ? 1 : 0
      droppedLines += 1
      return
    }
    waiting += line.utf8
    used += count
  }

  /// Returns all waiting bytes, to be written; empty when there are none.
  mutating func take() -> [UInt8] {
    defer { waiting = [] }
    return waiting
  }

  /// Notes that `count` of the taken bytes were written.
  ///
  /// - Parameter notice: makes the line that reports dropped lines, which is added when half of the buffer is free.
  mutating func wrote(_ count: Int, notice: (Dropped) -> String) {
    used -= count
    guard dropped.lines > 0, used <= capacity / 2 else { return }
    let line = notice(dropped)
    dropped = Dropped()
    waiting += line.utf8
    used += line.utf8.count
  }

  /// The bytes that a pipe accepts atomically, without bytes of other programs between them.
  static let pieceSize = 4_096

  /// Returns the end of the piece that begins at `start`. A piece contains whole lines, as many as can be written atomically.
  static func endOfPiece(in bytes: [UInt8], from start: Int) -> Int {
    guard bytes.count - start > pieceSize else { return bytes.count }
    let end = start + pieceSize
    let lineBreak = UInt8(ascii: "\n")
    if let last = bytes[start..<end].lastIndex(of: lineBreak) { return last + 1 }
    return bytes[end...].firstIndex(of: lineBreak).map { $0 + 1 } ?? bytes.count
  }
}
