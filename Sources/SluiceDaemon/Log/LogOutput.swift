import Glibc
import SluiceCommand
import SluiceIO
import Synchronization

/// Where the log goes: a thread of its own writes the lines, so that a reader that is slow, or hangs, holds up nobody else.
///
/// Lines wait in a ``LogBuffer``, and what doesn't find room there is dropped and told of. The thread is started with the first line; where the
/// system has none left, lines are written at once. What nobody can read, since the reader is gone or the disk is full, is lost. Before the
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
    /// How the last line was written.
    var format = LogFormat.text
    var writer = Writer.notStarted
    /// Whether the thread will look for lines by itself.
    var isWriting = false
  }

  private let descriptor: Int32
  private let state = Mutex(State())

  /// - Parameter descriptor: stays its owner's.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
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

  /// Has a line written, and returns at once.
  ///
  /// - Parameters:
  ///   - line: with its line break.
  ///   - format: how it was made, as is then what has to be told of dropped ones; nil for neither.
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
      time: Logger.now, level: .warning,
      message: "lines are missing here: who reads the log was too slow for it; --log-buffer may be larger",
      fields: [("lines", .number(Int64(dropped.lines)))])
    if dropped.audits > 0 {
      line.fields += [("audits", .number(Int64(dropped.audits)))]
      line.fields.insert(("audit", .flag(true)), at: 0)
    }
    return line.rendered(as: format)
  }

  /// Waits until all lines are written, a second at most: whoever should read them may hang.
  func flush() {
    let deadline = EpollLoop.time + .seconds(1)
    while !state.withLock({ $0.buffer.isEmpty }), EpollLoop.time < deadline { usleep(1_000) }
  }
}
