import Glibc
import Synchronization

/// Writes events to standard error, a line each, so that lines of several threads never mix. All copies are of one logger.
struct Logger: Sendable {
  /// What is written, and how, which may change.
  private final class Manner: Sendable {
    let state: Mutex<(level: LogLevel, format: LogFormat)>

    init(_ level: LogLevel, _ format: LogFormat) {
      state = Mutex((level, format))
    }
  }

  private let manner: Manner
  private let output: LogOutput

  init(level: LogLevel, format: LogFormat, to output: LogOutput = .standardError) {
    manner = Manner(level, format)
    self.output = output
  }

  var level: LogLevel { manner.state.withLock { $0.level } }

  /// From any thread.
  func change(level: LogLevel, format: LogFormat) {
    manner.state.withLock { $0 = (level, format) }
  }

  /// From any thread. Doesn't wait for anybody to read it: see ``LogOutput``.
  func log(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
    self.log(level, message, fields: Array(fields))
  }

  /// The same, with fields that aren't known in advance.
  ///
  /// - Parameter isAudit: it is marked as such, and written whatever the level.
  func log(
    _ level: LogLevel, _ message: String, fields: [(key: String, value: LogValue)], isAudit: Bool = false
  ) {
    let (least, format) = manner.state.withLock { $0 }
    guard isAudit || level >= least else { return }
    let fields = isAudit ? [("audit", .flag(true))] + fields : fields
    let line = LogLine(time: Self.now, level: level, message: message, fields: fields)
    output.write(line.rendered(as: format), as: format, isAudit: isAudit)
  }

  /// Waits until what was logged is written, a second at most.
  func flush() { output.flush() }

  /// Whether such an event is written at all.
  func writes(_ level: LogLevel, isAudit: Bool) -> Bool { isAudit || level >= self.level }

  /// Milliseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
