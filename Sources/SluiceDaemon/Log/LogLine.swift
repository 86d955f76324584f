import SluiceCommand

/// A value that belongs to an event.
enum LogValue {
  case text(String)
  case number(Int64)
  case flag(Bool)
}

/// One event as a line.
struct LogLine {
  var time: Int64
  var level: LogLevel
  var message: String
  var fields: [(key: String, value: LogValue)]

  /// The line, with its line break: always exactly one, whatever the values contain.
  func rendered(as format: LogFormat) -> String {
    switch format {
    case .text: text
    case .json: json
    }
  }

  private var text: String {
    let padding = String(repeating: " ", count: 7 - level.name.count)
    var line = "\(WallTime.format(time)) \(level.name)\(padding) \(JSONText.escaped(message, quotes: false))"
    for (name, value) in fields {
      switch value {
      case .number(let number): line += " \(name)=\(number)"
      case .flag(let flag): line += " \(name)=\(flag)"
      case .text(let text):
        let isPlain =
          !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
        line += " \(name)=\(isPlain ? text : JSONText.quoted(text))"
      }
    }
    return line + "\n"
  }

  private var json: String {
    var line = "{\"time\":\"\(WallTime.format(time))\",\"level\":\"\(level.name)\""
    line += ",\"message\":\(JSONText.quoted(message))"
    for (name, value) in fields {
      switch value {
      case .number(let number): line += ",\(JSONText.quoted(name)):\(number)"
      case .flag(let flag): line += ",\(JSONText.quoted(name)):\(flag)"
      case .text(let text): line += ",\(JSONText.quoted(name)):\(JSONText.quoted(text))"
      }
    }
    return line + "}\n"
  }
}
