/// What a value is, as far as shells that complete it and files that contain it want to know: it follows from how the help writes it.
public enum ValueKind: Hashable, Sendable {
  case text
  /// One of a few words.
  case choice
  case boolean
  case count
  case size
  case time
  case file
  case directory
  case topic

  init(notation: String, words: [String]) {
    switch notation {
    case "BOOL", "on|off": self = .boolean
    case "N": self = .count
    case "SIZE": self = .size
    case "TIME": self = .time
    case "FILE": self = .file
    case "DIR": self = .directory
    case "TOPIC": self = .topic
    default: self = words.isEmpty ? .text : .choice
    }
  }
}

extension CommandOption {
  /// Nil for an option without a value.
  public var kind: ValueKind? { value.map { ValueKind(notation: $0, words: words) } }

  /// The words that its value can be.
  public var words: [String] {
    guard let value else { return [] }
    if value == "BOOL" { return ["true", "false"] }
    return value.contains("|") ? value.split(separator: "|").map(String.init) : choices
  }
}

extension Operand {
  public var kind: ValueKind { ValueKind(notation: name, words: choices) }
}
