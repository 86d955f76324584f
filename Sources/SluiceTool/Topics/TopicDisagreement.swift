import SluiceClient
import SluiceCommand
import SluiceWire

/// A topic that exists with other settings than a command has named.
struct TopicDisagreement {
  /// What decides how records are kept, and stays as long as the topic exists.
  private static let fixed: Set<String> = ["scope", "compact", "storage", "sync"]

  let topic: String
  /// The settings that were named, with their values as typed.
  let named: [(name: String, value: String)]

  /// - Parameter settings: what the arguments come to.
  init(_ topic: String, _ arguments: ParsedArguments, _ settings: TopicSettings) {
    self.topic = topic
    named = TopicOption.written(settings).map { name, value in
      let typed = arguments.text(name) ?? (name == "replay-age" ? arguments.text("keep") : nil)
      return (name, typed ?? value)
    }
  }

  /// The difference, and the command that ends it; nil if all that was named holds.
  func message(_ existing: TopicSettings, asked: TopicSettings) -> String? {
    let asked = Dictionary(uniqueKeysWithValues: TopicOption.written(asked).map { ($0.name, $0.value) })
    let existing = Dictionary(uniqueKeysWithValues: TopicOption.written(existing).map { ($0.name, $0.value) })
    let differing = named.filter { asked[$0.name] != existing[$0.name] }
    guard !differing.isEmpty else { return nil }
    let differences = differing.map { "\($0.name) is \(existing[$0.name] ?? "the default"), not \($0.value)" }
    let changed = differing.filter { !Self.fixed.contains($0.name) }
    var message = "topic \(topic) exists with other settings: \(differences.joined(separator: ", "))"
    if !changed.isEmpty {
      let options = changed.map { "--\($0.name) \($0.value)" }.joined(separator: " ")
      message += "; sluice topic set \(topic) \(options) changes \(changed.count == 1 ? "it" : "them")"
    }
    let kept = differing.filter { Self.fixed.contains($0.name) }.map { "--\($0.name)" }
    if !kept.isEmpty {
      message += "; \(kept.joined(separator: " and ")) can't be changed while the topic exists"
    }
    return message
  }

  /// Ends the run with the difference, for which it asks the broker.
  func fail(_ run: Run, _ client: Client, _ error: ClientError, asked: TopicSettings) {
    client.topicInfo(topic) { result in
      guard case .success(let info) = result, let message = message(info.settings, asked: asked) else {
        return run.fail(error)
      }
      run.finish(.failure, message)
    }
  }
}
