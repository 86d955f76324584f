import SluiceLog
import SluiceWire
import Synchronization

/// The settings that new topics get. They may change while the broker runs. From any thread.
final class TopicPlan: Sendable {
  private let plan: Mutex<(defaults: TopicSettings, rules: [TopicRule])>

  init(defaults: TopicSettings, rules: [TopicRule]) {
    plan = Mutex((defaults, rules))
  }

  func update(defaults: TopicSettings, rules: [TopicRule]) {
    plan.withLock { $0 = (defaults, rules) }
  }

  /// Completes the settings for a topic of that name: by the first rule that matches, then by the defaults.
  func completed(_ settings: TopicSettings, of name: String) -> TopicSettings {
    let (defaults, rules) = plan.withLock { $0 }
    let rule = rules.first { $0.pattern.matches(name) }?.settings ?? Self.builtIn(name)
    return settings.completed(by: rule).completed(by: defaults).completed
  }

  /// The settings that a name implies where no rule matches. Inboxes, to which replies come, keep no records for late subscribers and are
  /// deleted when they are no longer used.
  private static func builtIn(_ name: String) -> TopicSettings {
    guard TopicName.isInbox(name) else { return TopicSettings() }
    var settings = TopicSettings(replayRecords: 0)
    settings.autoDelete = true
    settings.storage = .memory
    return settings
  }
}

/// A topic's complete settings, as an object that one atomic store replaces.
final class EffectiveSettings: Sendable {
  /// No setting is nil.
  let settings: TopicSettings

  init(_ settings: TopicSettings) {
    self.settings = settings
  }
}

extension TopicSettings {
  var retention: Retention {
    func limit(_ value: UInt64?) -> UInt64? { value == Self.unlimited ? nil : value }
    return Retention(
      records: limit(replayRecords), bytes: limit(replayBytes),
      ageMilliseconds: limit(replayAge).map { Int64(clamping: $0) })
  }

  /// These settings, completed by the standard ones for their storage: the standard retention depends on it.
  var completed: TopicSettings {
    completed(by: BrokerConfiguration.standardTopic(in: storage ?? .memory))
  }
}
