/// A command with everything that is known about it: what it takes, what it does, how it is used.
///
/// The parser checks arguments against it, and the help is written from it.
public struct CommandPage: Sendable {
  /// A line to try, and what it does.
  public struct Example: Sendable {
    public var purpose: String
    public var line: String

    public init(_ purpose: String, _ line: String) {
      self.purpose = purpose
      self.line = line
    }
  }

  /// As it is called: `sluice topic create`.
  public var name: String
  /// What it is, in half a line.
  public var summary: String
  public var operands: [Operand]
  public var options: [CommandOption]
  /// What a person needs to know beyond the options, a paragraph each.
  public var details: [String]
  public var examples: [Example]
  /// Commands that its first operand names.
  public var commands: [CommandPage]

  public init(
    _ name: String, summary: String, operands: [Operand] = [], options: [CommandOption] = [],
    details: [String] = [], examples: [Example] = [], commands: [CommandPage] = []
  ) {
    self.name = name
    self.summary = summary
    self.operands = operands
    self.options = options
    self.details = details
    self.examples = examples
    self.commands = commands
  }

  /// The last word of the name.
  public var word: String { name.split(separator: " ").last.map(String.init) ?? name }
}
