/// A name in a frame, and the rules that it has.
public struct FrameName: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    case topic
    case pattern
    /// A durable cursor, or either a durable cursor or a group.
    case cursor
    case group
    /// The topic to which a group's dead letters go.
    case deadLetters
    /// A node of a cluster.
    case node
  }

  public var kind: Kind
  public var text: String
  /// Whether the empty text stands for none.
  public var isOptional: Bool

  public init(_ kind: Kind, _ text: String, isOptional: Bool = false) {
    self.kind = kind
    self.text = text
    self.isOptional = isOptional
  }

  /// - Throws: ``ErrorCode/invalidTopic`` with what is wrong.
  public func validate() throws(WireError) {
    if isOptional, text.isEmpty { return }
    switch kind {
    case .topic: try TopicName.validate(text)
    case .pattern: _ = try TopicPattern(text)
    case .cursor: try TopicName.validate(text, as: "cursor")
    case .group:
      do { try TopicName.validate(text) } catch {
        throw WireError(error.code, "the group's name isn't one: \(error.message)")
      }
    case .node: try NodeName.validate(text)
    case .deadLetters:
      do { try TopicName.validate(text) } catch {
        throw WireError(error.code, "the dead letters' topic has a name that isn't one: \(error.message)")
      }
    }
  }
}

extension Frame {
  public var names: [FrameName] { [] }

  /// Checks every name of the frame. A broker does so before it does anything else with a frame.
  ///
  /// - Throws: ``ErrorCode/invalidTopic`` for the first one that isn't a name, which is an error of the frame's stream.
  public func validateNames() throws(WireError) {
    for name in names { try name.validate() }
  }
}
