import SluiceWire

/// The settings of a topic during a restore, and the changes at its end.
enum RestoredSettings {
  /// Settings with which all records can be published without subscribers or a connection, and no interruption ends the topic.
  static func passing(_ settings: TopicSettings) -> TopicSettings {
    var settings = settings
    settings.flow = .free
    settings.connect = .immediate
    settings.autoDelete = false
    settings.whenProducerLost = .wait
    return settings
  }

  /// The changes that give a topic with the settings `passing` its final `settings`, among those that ``passing(_:)`` changes.
  static func changes(from passing: TopicSettings, to settings: TopicSettings) -> TopicSettings {
    var changes = TopicSettings()
    if settings.flow != passing.flow { changes.flow = settings.flow }
    if settings.connect != passing.connect { changes.connect = settings.connect }
    if settings.autoDelete != passing.autoDelete { changes.autoDelete = settings.autoDelete }
    if settings.whenProducerLost != passing.whenProducerLost {
      changes.whenProducerLost = settings.whenProducerLost
    }
    return changes
  }
}
