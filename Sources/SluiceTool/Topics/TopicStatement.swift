import SluiceClient
import SluiceCommand

/// What `sluice pub` and `sluice sub` state of their topic.
enum TopicStatement {
  static var option: CommandOption {
    CommandOption(
      "as", value: "PRESET",
      help:
        "State the topic's settings by a name: \(TopicPreset.forms). A topic that doesn't exist is created with them; a topic with other settings is an error.",
      choices: TopicOption.preset.choices)
  }

  /// Nil when nothing is stated.
  static func settings(_ arguments: ParsedArguments) throws(UsageError) -> TopicSettings? {
    try arguments.value("as", TopicPreset.parse)
  }
}
