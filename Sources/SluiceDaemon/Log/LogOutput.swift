import Glibc
import SluiceCommand
import SluiceIO
import Synchronization

/// Where the log goes: a thread of its own writes the lines, so that a slow or hanging reader holds up no other thread.
///
/// Lines wait in a ``LogBuffer``; lines that find no room there are dropped, and their number is logged. The thread is started with the first line; where the
/// system has none left, lines are written at once. Lines are lost when the reader is gone or the disk is full. Before the
/// process ends, ``flush()`` has to be called.
///
/// From any thread.
final class LogOutput: Sendable {
  static let standardError = LogOutput(STDERR_FILENO)

  private enum Writer {
    case notStarted
    case loop(EpollLoop)
    /// There is no thread for it.
    case caller
  }

  private struct State {
    var buffer = LogBuffer()
    /// The format of the last line.
    var format = LogFormat.text
    var writer = Writer.notStarted
    /// Whether the thread is at work, and will find further lines by itself.
    var isWriting = false
  }

  private let descriptor: Int32
  private let state = Mutex(State())

  /// Whether systemd's journal reads the lines: then each has its priority in front.
  let isJournal: Bool

  /// - Parameter descriptor: stays its owner's.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    // systemd names the device and the inode of the stream that it has made. One that was put elsewhere since then is another.
    var status = stat()
    isJournal =
      unsafe fstat(descriptor, &status) == 0
      && Environment.value("JOURNAL_STREAM") == "\(status.st_dev):\(status.st_ino)"
  }

  deinit {
    state.withLock { if case .loop(let loop) = $0.writer { loop.stop() } }
  }

  /// Bytes of lines that may wait.
  var capacity: Int {
    get { state.withLock { $0.buffer.capacity } }
    set { state.withLock { $0.buffer.capacity = newValue } }
  }

  /// Lines that were ever dropped.
  var droppedLines: Int { state.withLock { $0.buffer.droppedLines } }

  /// Queues a line, and returns at once.
  ///
  /// - Parameters:
  ///   - line: with its line break.
  ///   - format: the line's format, in which notices of dropped lines follow; nil to leave that as it is.
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

  /// The thread's loop; nil where there can't be one.
  private static func loop(_ state: inout State) -> EpollLoop? {
    if case .notStarted = state.writer {
      state.writer = (try? EpollLoop.start(name: "log")).map { .loop($0) } ?? .caller
    }
    if case .loop(let loop) = state.writer { return loop }
    return nil
  }

  /// On the thread.
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

  /// Waits until all lines are written, a second at most: their reader may hang.
  func flush() {
    let deadline = EpollLoop.time + .seconds(1)
    while !state.withLock({ $0.buffer.isEmpty }), EpollLoop.time < deadline { usleep(1_000) }
  }
}

/// Lines that wait to be written, up to a number of bytes; those that come beyond it are dropped, and counted.
///
/// What holds: lines stay in their order, and whole. A quarter of the room is for lines of the audit alone, which therefore are dropped only when even that is
/// taken, and other lines before them: as long as those of the audit that wait come to less than the quarter, none of them is. Once a line was dropped, no
/// other than those of the audit is taken until half of the room is free again; then one line tells how many
/// were dropped.
struct LogBuffer {
  /// Lines that were dropped.
  struct Dropped: Hashable {
    var lines = 0
    /// Those of them that belong to the audit.
    var audits = 0
  }

  static let standardCapacity = 1 << 20

  /// Bytes.
  var capacity: Int
  /// Bytes that wait, and those that are being written.
  private(set) var used = 0
  /// Lines that were ever dropped.
  private(set) var droppedLines = 0
  private var waiting: [UInt8] = []
  /// Dropped lines that weren't reported yet.
  private var dropped = Dropped()

  init(capacity: Int = standardCapacity) {
    self.capacity = capacity
  }

  var isEmpty: Bool { used == 0 }

  /// - Parameter line: with its line break.
  mutating func add(_ line: String, isAudit: Bool) {
    let count = line.utf8.count
    let room = isAudit ? capacity : dropped.lines > 0 ? 0 : capacity - capacity / 4
    // One that is longer than the buffer is still written when nothing else is.
    guard used == 0 || count <= room - used else {
      dropped.lines += 1
      dropped.audits += isAudit ? 1 : 0
      droppedLines += 1
      return
    }
    waiting += line.utf8
    used += count
  }

  /// All that waits, to be written; empty when nothing does.
  mutating func take() -> [UInt8] {
    defer { waiting = [] }
    return waiting
  }

  /// Notes that `count` bytes of the taken ones have been written.
  ///
  /// - Parameter notice: makes the line that reports dropped lines, which is added now.
  mutating func wrote(_ count: Int, notice: (Dropped) -> String) {
    used -= count
    guard dropped.lines > 0, used <= capacity / 2 else { return }
    let line = notice(dropped)
    dropped = Dropped()
    waiting += line.utf8
    used += line.utf8.count
  }

  /// The bytes that a pipe takes at once, without those of another program between them.
  static let pieceSize = 4_096

  /// Where the piece that begins at `start` ends: lines are written whole, and as many at once as no others get between.
  static func endOfPiece(in bytes: [UInt8], from start: Int) -> Int {
    guard bytes.count - start > pieceSize else { return bytes.count }
    let end = start + pieceSize
    let lineBreak = UInt8(ascii: "\n")
    if let last = bytes[start..<end].lastIndex(of: lineBreak) { return last + 1 }
    return bytes[end...].firstIndex(of: lineBreak).map { $0 + 1 } ?? bytes.count
  }
}
