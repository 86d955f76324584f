/// The description of a command: its arguments, its purpose, and examples.
///
/// The parser checks arguments against it, and the help is generated from it.
public struct CommandPage: Sendable {
  /// An example command line, and its purpose.
  public typealias Example = (purpose: String, line: String)

  /// The full name: `sluice topic create`.
  public var name: String
  /// Its purpose, in half a line.
  public var summary: String
  public var operands: [Operand]
  public var options: [CommandOption]
  /// Explanations beyond the options, a paragraph each.
  public var details: [String]
  public var examples: [Example]
  /// The subcommands, which the first operand names.
  public var commands: [CommandPage]

  /// - Parameters:
  ///   - details: paragraphs, a line each.
  ///   - examples: command lines by their purposes.
  public init(
    _ name: String, summary: String, operands: [Operand] = [], options: [CommandOption] = [],
    details: String = "", examples: KeyValuePairs<String, String> = [:], commands: [CommandPage] = []
  ) {
    self.name = name
    self.summary = summary
    self.operands = operands
    self.options = options
    self.details = details.split(separator: "\n").map(String.init)
    self.examples = examples.map { ($0.key, $0.value) }
    self.commands = commands
  }

  /// The last word of the name.
  public var word: String { name.split(separator: " ").last.map(String.init) ?? name }
}

/// An option of a command: the parser and the help both use it.
public struct CommandOption: Sendable {
  /// Without dashes: `listen` for `--listen`.
  public var name: String
  /// The short form, a letter after a single dash; nil for none.
  public var letter: Character?
  /// The value's placeholder in the help, `ADDR`; nil for an option without a value.
  public var value: String?
  /// The value if it is given without one: `true` for `--compact`. Another value is given after an equals sign.
  public var bare: String?
  /// The explanation, in a sentence or two, which the help wraps.
  public var help: String
  /// Whether it may be given several times, and all values count.
  public var isRepeatable: Bool
  /// The environment variable that sets the same.
  public var environment: String?
  /// The default, in the notation of the option.
  public var standard: String?
  /// The error for an option that is known but unavailable, which the help leaves out; nil for an available one.
  public var unavailable: String?
  /// Words that its value can be, in addition to those in `value`.
  public var choices: [String]
  /// Whether values may have spaces in them: in the environment, several are separated by commas alone.
  public var hasSpaces: Bool
  /// Whether its value is bytes, which needn't be UTF-8.
  public var takesBytes: Bool

  public init(
    _ name: String, letter: Character? = nil, value: String? = nil, bare: String? = nil, help: String,
    isRepeatable: Bool = false, environment: String? = nil, standard: String? = nil,
    unavailable: String? = nil, choices: [String] = [],
    hasSpaces: Bool = false, takesBytes: Bool = false
  ) {
    self.name = name
    self.letter = letter
    self.value = value
    self.bare = bare
    self.help = help
    self.isRepeatable = isRepeatable
    self.environment = environment
    self.standard = standard
    self.unavailable = unavailable
    self.choices = choices
    self.hasSpaces = hasSpaces
    self.takesBytes = takesBytes
  }
}

/// An argument of a command that isn't an option.
public struct Operand: Sendable {
  public enum Arity: Sendable {
    case required
    case optional
    /// Any number of them, none included. Only as the last operand.
    case repeated
  }

  /// Its name in the help: `TOPIC`.
  public var name: String
  public var arity: Arity
  /// The words that it can be; empty for any text.
  public var choices: [String]
  /// Whether it is bytes, which needn't be UTF-8.
  public var takesBytes: Bool

  public init(
    _ name: String, _ arity: Arity = .required, choices: [String] = [], takesBytes: Bool = false
  ) {
    self.name = name
    self.arity = arity
    self.choices = choices
    self.takesBytes = takesBytes
  }
}

/// The kind of a value, for completion and for the configuration file. It is derived from the placeholder in the help.
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

  /// Whether its value is a separate word, like that of `--server`.
  var takesWord: Bool { value != nil && bare == nil }

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
