import SluiceCommand
import SluiceWire
import Synchronization

/// Writes events to standard error, one per line, so that lines of several threads never mix.
final class Logger: Sendable {
  /// The level and the format, which can be changed.
  private let manner: Mutex<(level: LogLevel, format: LogFormat)>
  private let output: LogOutput

  init(level: LogLevel, format: LogFormat, to output: LogOutput = .standardError) {
    manner = Mutex((level, format))
    self.output = output
  }

  /// From any thread.
  func change(level: LogLevel, format: LogFormat) {
    manner.withLock { $0 = (level, format) }
  }

  /// From any thread. Doesn't wait for a reader: see ``LogOutput``.
  func log(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, JSON> = [:]) {
    self.log(level, message, fields: Array(fields))
  }

  /// Logs a line with fields that aren't known in advance.
  ///
  /// - Parameter isAudit: whether the line is marked as audit, and written at every level.
  func log(
    _ level: LogLevel, _ message: String, fields: [(key: String, value: JSON)], isAudit: Bool = false
  ) {
    let (least, format) = manner.withLock { $0 }
    guard isAudit || level >= least else { return }
    let fields = isAudit ? [("audit", .flag(true))] + fields : fields
    let line = LogLine(time: WallTime.now, level: level, message: message, fields: fields)
    let priority = output.isJournal ? level.journalPriority : ""
    output.write(priority + line.rendered(as: format), as: format, isAudit: isAudit)
  }

  /// Waits until all lines are written, for at most a second.
  func flush() { output.flush() }

  /// Returns whether such a line is written.
  func writes(_ level: LogLevel, isAudit: Bool) -> Bool { isAudit || level >= manner.withLock { $0.level } }
}

/// The severity of an event.
enum LogLevel: Int, Comparable {
  case debug, info, warning, error

  var name: String { ["debug", "info", "warning", "error"][rawValue] }

  /// The prefix of a line for systemd's journal: syslog's number of the severity.
  var journalPriority: String { ["<7>", "<6>", "<4>", "<3>"][rawValue] }

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The format of lines.
enum LogFormat: String {
  /// `2026-02-03T04:05:06.789Z info    started loops=2`
  case text
  /// `{"time":"2026-02-03T04:05:06.789Z","level":"info","message":"started","loops":2}`
  case json
}

/// One event as a line.
struct LogLine {
  var time: Int64
  var level: LogLevel
  var message: String
  var fields: [(key: String, value: JSON)]

  /// The line with its line break. It is always exactly one line, whatever the values contain.
  func rendered(as format: LogFormat) -> String {
    switch format {
    case .text: text
    case .json: json
    }
  }

  private var text: String {
    let padding = String(repeating: " ", count: 7 - level.name.count)
    var line = "\(WallTime.format(time)) \(level.name)\(padding) \(ShownText.line(message))"
    for (name, value) in fields {
      switch value {
      case .notation(let notation): line += " \(name)=\(notation)"
      case .text(let text):
        let isPlain =
          !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
        line += " \(name)=\(isPlain ? text : JSONText.quoted(text))"
      }
    }
    return line + "\n"
  }

  private var json: String {
    let head: JSON = [
      "time": .text(WallTime.format(time)), "level": .text(level.name), "message": .text(message),
    ]
    return (fields.isEmpty ? head : head + .object(fields.map { ($0.key, $0.value) })).line
  }
}
