import SluiceLog
import SluiceWire
import Synchronization

/// The settings that new topics get. They may change while the broker runs. From any thread.
package final class TopicPlan: Sendable {
  private let plan: Mutex<(defaults: TopicSettings, rules: [TopicRule])>

  package init(defaults: TopicSettings, rules: [TopicRule]) {
    plan = Mutex((defaults, rules))
  }

  package func update(defaults: TopicSettings, rules: [TopicRule]) {
    plan.withLock { $0 = (defaults, rules) }
  }

  /// Completes the settings for a topic of that name with those of the first rule that matches, then with the defaults.
  package func completed(_ settings: TopicSettings, of name: String) -> TopicSettings {
    let (defaults, rules) = plan.withLock { $0 }
    let rule = rules.first { $0.pattern.matches(name) }?.settings ?? Self.builtIn(name)
    return settings.completed(by: rule).completed(by: defaults).completed
  }

  /// The settings that a name implies if no rule matches. Inboxes, which receive replies, keep no records for late subscribers and are deleted when they are
  /// no longer used.
  private static func builtIn(_ name: String) -> TopicSettings {
    guard TopicName.isInbox(name) else { return TopicSettings() }
    var settings = TopicSettings(replayRecords: 0)
    settings.autoDelete = true
    settings.storage = .memory
    return settings
  }
}

extension TopicSettings {
  var retention: Retention {
    func limit(_ value: UInt64?) -> UInt64? { value == Self.unlimited ? nil : value }
    return Retention(
      records: limit(replayRecords), bytes: limit(replayBytes),
      ageMilliseconds: limit(replayAge).map { Int64(clamping: $0) })
  }

  /// These settings, completed with the standard ones for their storage, on which the standard retention depends.
  package var completed: TopicSettings {
    completed(by: Self.standard(in: storage ?? .memory))
  }

  /// Bytes of records that a topic in memory keeps unless a limit is set: 64 MiB.
  package static let standardMemoryReplay: UInt64 = 64 << 20

  /// The settings of a topic for which no setting is stated.
  package static func standard(in storage: TopicSettings.Storage) -> TopicSettings {
    var settings = standard
    settings.replayBytes = storage == .memory ? standardMemoryReplay : unlimited
    return settings
  }

  /// The standard settings that don't depend on the storage:
  /// - stored in memory; any number and age of records for late subscribers; scope forever
  /// - producers run ahead; paced producers have a buffer of 1,024 records and 8 MiB, also without subscribers
  /// - subscribers that lag skip records; late ones get every record, not just the newest of each key
  package static var standard: TopicSettings {
    var settings = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayAge: TopicSettings.unlimited)
    settings.scope = .forever
    settings.flow = .free
    settings.connect = .immediate
    settings.bufferRecords = 1024
    settings.bufferBytes = 8 << 20
    settings.withoutSubscribers = .buffer
    settings.lag = .skip
    settings.compact = false
    settings.autoDelete = false
    settings.storage = .memory
    settings.sync = .always
    settings.whenProducerLost = .wait
    return settings
  }
}

/// Settings for new topics whose names match a pattern.
public struct TopicRule: Hashable, Sendable {
  public var pattern: TopicPattern
  /// Nil for the default.
  public var settings: TopicSettings

  public init(pattern: TopicPattern, settings: TopicSettings) {
    self.pattern = pattern
    self.settings = settings
  }
}
