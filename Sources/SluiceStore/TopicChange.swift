/// What a commit does to one topic.
public struct TopicChange: Sendable {
  /// A small state that is set, or removed.
  public struct State: Hashable, Sendable {
    public var kind: StoredState.Kind
    public var key: [UInt8]
    /// Nil to remove it.
    public var value: [UInt8]?

    public init(_ kind: StoredState.Kind, key: [UInt8], value: [UInt8]?) {
      self.kind = kind
      self.key = key
      self.value = value
    }

    /// Why no store takes it; nil for one that a store takes.
    public var violation: StoreError? {
      guard !(1...255 ~= key.count) else { return nil }
      return StoreError(.invalid, "a state's key has \(key.count) bytes; it must have 1 to 255")
    }
  }

  public var topic: TopicID
  /// The topic as it is from now on; nil for as it was. A topic's first change has one.
  public var row: StoredTopic?
  /// Sealed, in order, the first at the topic's head. For a topic that is new, the first one's offset is where it begins.
  public var batches: [BatchBlock] = []
  public var states: [State] = []
  /// Drops the batches all of whose records are before that offset.
  public var truncateBefore: UInt64?
  /// Drops the topic with all that it has. Nothing else is looked at then.
  public var isDeletion = false

  public init(_ topic: TopicID) {
    self.topic = topic
  }
}
