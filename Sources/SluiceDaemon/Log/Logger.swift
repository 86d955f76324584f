import Glibc
import SluiceCommand

/// Writes events to standard error, a line and a write each, so that lines of several threads never mix.
struct Logger: Sendable {
  let level: LogLevel
  let format: LogFormat

  /// From any thread. May block as long as nobody reads standard error.
  func log(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
    self.log(level, message, fields: Array(fields))
  }

  /// The same, with fields that aren't known in advance.
  func log(_ level: LogLevel, _ message: String, fields: [(key: String, value: LogValue)]) {
    guard level >= self.level else { return }
    let line = LogLine(time: Self.now, level: level, message: message, fields: fields)
    Descriptor.write(line.rendered(as: format), to: STDERR_FILENO)
  }

  /// Milliseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
