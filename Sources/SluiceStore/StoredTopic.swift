import SluiceWire

/// A topic's number within its store. Never given twice.
public struct TopicID: RawRepresentable, Hashable, Comparable, Sendable {
  public var rawValue: UInt64

  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// What is kept of a topic besides its records and its small states.
public struct StoredTopic: Hashable, Sendable {
  /// A life that this one continues: records up to there are the same in both.
  public struct Ancestor: Hashable, Sendable {
    public var epoch: UInt64
    /// The offset of the first record that the later life doesn't share.
    public var end: UInt64

    public init(epoch: UInt64, end: UInt64) {
      self.epoch = epoch
      self.end = end
    }
  }

  public var name: String
  /// Complete, as far as the version that wrote them knows settings.
  public var settings: TopicSettings
  public var epoch: UInt64
  /// Oldest first.
  public var lineage: [Ancestor]
  /// The terminal event.
  public var ending: Complete.Ending?
  /// The producer that ended it; 0 for one without a number.
  public var endedBy: UInt64
  /// Whether a client has stated the settings; otherwise they were defaults.
  public var isStated: Bool

  public init(
    name: String, settings: TopicSettings, epoch: UInt64, lineage: [Ancestor] = [],
    ending: Complete.Ending? = nil, endedBy: UInt64 = 0, isStated: Bool = true
  ) {
    self.name = name
    self.settings = settings
    self.epoch = epoch
    self.lineage = lineage
    self.ending = ending
    self.endedBy = endedBy
    self.isStated = isStated
  }
}

/// A small piece of a topic's state, under a key, which changes together with records.
public struct StoredState: Hashable, Sendable {
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    /// By a producer's number: what was published by it.
    case producer = 1
    /// By name: where a durable cursor stands.
    case cursor = 2
    /// By name: a group's settings, and what is done with.
    case group = 3
  }

  public var kind: Kind
  /// 1 to 255 bytes.
  public var key: [UInt8]
  public var value: [UInt8]

  public init(_ kind: Kind, key: [UInt8], value: [UInt8]) {
    self.kind = kind
    self.key = key
    self.value = value
  }
}
