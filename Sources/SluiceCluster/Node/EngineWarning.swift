/// A problem of the engine's servers that an operator should fix.
public struct EngineWarning: Hashable, Sendable {
  /// Identifies the problem: warnings with the same ID differ only in figures.
  public var id: String
  /// A sentence without a full stop.
  public var text: String

  public init(_ id: String, _ text: String) {
    self.id = id
    self.text = text
  }
}
