import SluiceClient
import SluiceCommand
import SluiceWire

/// A topic's name as an argument.
enum TopicOperand {
  /// - Throws: `UsageError` if no topic can have that name.
  static func read(_ name: String) throws(UsageError) -> String {
    try UsageError.wrapping { () throws(WireError) in try TopicName.validate(name) }
    return name
  }

  /// - Throws: `UsageError` if it is neither a valid topic name nor a valid pattern.
  static func readPattern(_ text: String) throws(UsageError) -> (text: String, isPattern: Bool) {
    (text, try UsageError.wrapping { () throws(WireError) in try TopicPattern(text).hasWildcards })
  }
}

extension UsageError {
  /// Runs `body`, and throws the message of its error.
  static func wrapping<Value>(_ body: () throws(WireError) -> Value) throws(UsageError) -> Value {
    do {
      return try body()
    } catch {
      throw UsageError(error.message)
    }
  }
}

/// The topic settings that `sluice pub` and `sluice sub` state.
enum TopicStatement {
  static var option: CommandOption {
    CommandOption(
      "as", value: "PRESET",
      help:
        "State the topic's settings by a preset: \(TopicPreset.forms). Creates the topic with them if it doesn't exist; fails if it exists with other settings.",
      choices: TopicOption.preset.option.choices)
  }

  /// Nil without the option.
  static func settings(_ arguments: ParsedArguments) throws(UsageError) -> TopicSettings? {
    try arguments.value("as", TopicPreset.parse)
  }
}

/// Suggests existing names for a topic that doesn't exist.
enum UnknownTopic {
  /// The most topics of the broker to compare.
  private static let limit = 5_000

  /// Searches for similar names, and for wildcards of other systems.
  ///
  /// - Parameter completion: called once, on the client's loop, with a clause to append: empty, or "; did you mean …?".
  static func similar(to topic: String, _ client: Client, _ completion: @escaping (String) -> Void) {
    if let hint = ForeignWildcards.hint(for: topic) { return completion("; \(hint)") }
    nonisolated(unsafe) let completion = completion  // Passed in and called on the client's loop.
    client.topics(withPrefix: "", limit: limit) { result in
      // The topic itself may have been created meanwhile.
      let names = ((try? result.get()) ?? []).map(\.topic).filter { $0 != topic }
      unsafe completion(clause(Spelling.nearest(to: topic, in: names, limit: 3)))
    }
  }

  private static func clause(_ names: [String]) -> String {
    let quoted = names.map { "'\(ShownText.line($0))'" }
    switch quoted.count {
    case 0: return ""
    case 1: return "; did you mean \(quoted[0])?"
    default:
      return "; did you mean \(quoted.dropLast().joined(separator: ", ")) or \(quoted[quoted.count - 1])?"
    }
  }
}

/// Wildcards of MQTT and AMQP, which are ordinary characters of a topic's name here.
enum ForeignWildcards {
  /// Advice for a name with such wildcards; nil for any other name.
  static func hint(for name: String) -> String? {
    let tokens = name.split(separator: name.contains("/") ? "/" : ".", omittingEmptySubsequences: false)
    guard tokens.contains("+") || tokens.contains("#") else { return nil }
    let pattern = tokens.map { $0 == "+" ? "*" : $0 == "#" ? ">" : String($0) }.joined(separator: ".")
    let advice = "'+' and '#' aren't wildcards here: '*' matches one token, a last '>' the rest"
    guard (try? TopicPattern(pattern)) != nil else { return advice }
    return "\(advice): did you mean '\(pattern)'?"
  }
}

extension Run {
  /// Ends the run with a client's error, and similar names if the topic doesn't exist.
  func fail(_ error: ClientError, unknown topic: String, _ client: Client) {
    guard error.code == .unknownTopic else { return fail(error) }
    UnknownTopic.similar(to: topic, client) { [self] similar in finish(.failure, "\(error)\(similar)") }
  }
}
