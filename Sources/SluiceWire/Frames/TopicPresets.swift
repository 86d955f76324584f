// Settings under the names that users of Combine know.
extension TopicSettings {
  /// One run of a publisher for all subscribers: Combine's `share()`. Nothing is kept for late subscribers.
  public static var shared: TopicSettings { shared(replay: 0) }

  /// One run of a publisher for all subscribers, with its newest records kept for late ones: `share(replay:scope:)`.
  ///
  /// Producers that publish `when: .connected` begin with the first subscriber. With ``Scope/whileConnected`` they stop with the last one, and the next one
  /// begins another run, also after the end of one. With ``Scope/forever`` they never stop, and late subscribers get the retained records, and the end.
  /// Producers wait for the slowest subscriber, within the topic's buffer, so that a subscriber which has asked for records misses none.
  ///
  /// - Parameters:
  ///   - count: how many records are kept for late subscribers.
  ///   - scope: how long they are kept.
  public static func shared(replay count: UInt64, scope: Scope = .whileConnected) -> TopicSettings {
    var settings = TopicSettings(replayRecords: count, replayBytes: unlimited, replayAge: unlimited)
    settings.scope = scope
    settings.flow = .lossless
    settings.withoutSubscribers = .hold
    settings.connect = scope == .forever ? .autoStay(1) : .auto(1)
    // A topic that starts over can't be durable, whatever the broker's default is.
    if scope == .whileConnected { settings.storage = .memory }
    return settings
  }

  /// The newest records for late subscribers, for as long as the topic exists; producers run ahead: a `ReplaySubject`, and with 1 a
  /// `CurrentValueSubject`.
  public static func replayed(_ count: UInt64) -> TopicSettings {
    var settings = TopicSettings(replayRecords: count, replayBytes: unlimited, replayAge: unlimited)
    settings.scope = .forever
    settings.flow = .free
    settings.connect = .immediate
    return settings
  }

  /// Producers publish what the slowest subscriber has asked for, and nothing while there is no subscriber; nothing is kept.
  public static var backPressured: TopicSettings {
    var settings = TopicSettings(replayRecords: 0)
    settings.scope = .forever
    settings.flow = .lossless
    settings.bufferRecords = 0
    settings.withoutSubscribers = .hold
    settings.connect = .immediate
    return settings
  }

  /// One record, then the end, for every subscriber, however late it comes: a `Future`. The producer publishes at once, subscribers or not.
  public static var oneShot: TopicSettings { replayed(1) }

  /// These settings, with what they leave open taken from `defaults`.
  public func completed(by defaults: TopicSettings) -> TopicSettings {
    var settings = TopicSettings()
    for (key, value) in defaults.numbered { _ = settings.set(key, to: value) }
    for (key, value) in numbered { _ = settings.set(key, to: value) }
    return settings
  }
}
