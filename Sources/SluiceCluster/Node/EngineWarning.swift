/// What an operator should mend at the engine's servers.
public struct EngineWarning: Hashable, Sendable {
  /// What it is about: warnings that have the same differ in figures alone.
  public var id: String
  /// A sentence without a full stop.
  public var text: String

  public init(_ id: String, _ text: String) {
    self.id = id
    self.text = text
  }
}
