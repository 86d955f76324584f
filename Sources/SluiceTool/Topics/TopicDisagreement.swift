import SluiceClient
import SluiceCommand
import SluiceWire

/// A topic that exists with other settings than a command has named.
struct TopicDisagreement {
  /// The settings that can't be changed while the topic exists.
  private static let fixed: Set<String> = ["scope", "compact", "storage", "sync"]

  let topic: String
  /// The settings that were named, with their values as typed.
  let named: [(name: String, value: String)]

  /// - Parameter settings: the settings that the arguments state.
  init(_ topic: String, _ arguments: ParsedArguments, _ settings: TopicSettings) {
    self.topic = topic
    named = TopicOption.written(settings).map { name, value in
      let typed = arguments.text(name) ?? (name == "replay-age" ? arguments.text("keep") : nil)
      return (name, typed ?? value)
    }
  }

  /// A message with the differences, and the command that changes them; nil if the topic has all named settings.
  func message(_ existing: TopicSettings, asked: TopicSettings) -> String? {
    let asked = Dictionary(uniqueKeysWithValues: TopicOption.written(asked).map { ($0.name, $0.value) })
    let existing = Dictionary(uniqueKeysWithValues: TopicOption.written(existing).map { ($0.name, $0.value) })
    let differing = named.filter { asked[$0.name] != existing[$0.name] }
    guard !differing.isEmpty else { return nil }
    let differences = differing.map { "\($0.name) \(existing[$0.name] ?? "unset"), not \($0.value)" }
    var message = "topic \(topic) exists with \(differences.joined(separator: "; "))."
    let kept = differing.filter { Self.fixed.contains($0.name) }.map { "--\($0.name)" }
    if !kept.isEmpty {
      message += " \(kept.joined(separator: " and ")) can't be changed while the topic exists."
    }
    let changed = differing.filter { !Self.fixed.contains($0.name) }
    if !changed.isEmpty {
      let options = changed.map { "--\($0.name) \($0.value)" }.joined(separator: " ")
      let what = !kept.isEmpty ? "the rest" : changed.count == 1 ? "it" : "them"
      message += " To change \(what): sluice topic set \(topic) \(options)"
    }
    return message
  }

  /// Ends the run with the differences, after requesting the topic's settings.
  func fail(_ run: Run, _ client: Client, _ error: ClientError, asked: TopicSettings) {
    client.topicInfo(topic) { result in
      guard case .success(let info) = result, let message = message(info.settings, asked: asked) else {
        return run.fail(error)
      }
      run.finish(.failure, message)
    }
  }
}
