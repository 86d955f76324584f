import SluiceCommand
import SluiceWire

/// Topics of clients' requests and of the MQTT gateway, which lists leave out by default.
enum HiddenTopics {
  static let option = CommandOption(
    "all", help: "Include the topics of pending requests and of the MQTT gateway: _inbox.* and mqtt.*.")

  private static let prefixes = [TopicName.inboxPrefix, "mqtt."]

  static func contains(_ topic: String) -> Bool { prefixes.contains { topic.utf8.starts(with: $0.utf8) } }

  /// Whether a list with this prefix is meant to show hidden topics.
  static func isNamed(by prefix: String) -> Bool {
    !prefix.isEmpty
      && prefixes.contains { $0.utf8.starts(with: prefix.utf8) || prefix.utf8.starts(with: $0.utf8) }
  }
}
