import SluiceWire

/// A topic's complete settings, as an object that one atomic store replaces.
final class EffectiveSettings: Sendable {
  /// No setting is nil.
  let settings: TopicSettings

  init(_ settings: TopicSettings) {
    self.settings = settings
  }
}
