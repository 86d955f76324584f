import SluiceWire

/// A condition that an operator should look at: a sentence about the condition, its object and its beginning.
public struct Problem: Hashable, Sendable {
  /// In order of urgency.
  public enum Severity: String, Hashable, Sendable, Comparable {
    /// Records are rejected, or lost.
    case critical
    /// Records will be rejected or lost, or clients wait.
    case warning

    public static func < (left: Self, right: Self) -> Bool { left == .critical && right == .warning }
  }

  /// The kind of problem. The raw value is its name in the API.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    case storageFull, storageFailing, storageNearlyFull
    case memoryFull, memoryNearlyFull
    /// Memory for clients besides records: of all of them, and of one.
    case keptMemoryFull, keptMemoryShareNearlyFull
    case heldUp, consumerLag, subscriberLag
    case missedRecords, lostHistory, deadLetters
    case timesAhead
    case rejectedLogins, refusedConnections, slowLoops
    case engineUnreachable, engineDegraded, nodeNotReady, nodeUnreachable, shardsWithoutOwner, engineUnsafe
  }

  /// The object that an operator should look at.
  public enum Place: Hashable, Sendable {
    case broker
    case storage
    case connections
    case cluster
    /// A node of the cluster.
    case node(String)
    case topic(String)
    /// A durable cursor or a group.
    case consumer(String, topic: String)
    /// A subscription's or a publication's connection.
    case connection(UInt64, topic: String)
    /// The connections of an identity or address, as an account of memory names it.
    case account(String)

    /// The topic that it is about, if it is about one.
    public var topic: String? {
      switch self {
      case .topic(let name), .consumer(_, topic: let name), .connection(_, topic: let name): name
      case .broker, .storage, .connections, .cluster, .account, .node: nil
      }
    }

    /// The durable cursor or group that it is about, if it is about one.
    public var consumer: String? {
      if case .consumer(let name, topic: _) = self { name } else { nil }
    }

    /// The connection that it is about, if it is about one.
    public var connection: UInt64? {
      if case .connection(let id, topic: _) = self { id } else { nil }
    }
  }

  public var kind: Kind
  public var severity: Severity
  public var place: Place
  public var sentence: String
  /// When it began or was first found, in milliseconds since 1970.
  public var since: Int64

  public init(_ kind: Kind, _ severity: Severity, at place: Place, _ sentence: String, since: Int64) {
    self.kind = kind
    self.severity = severity
    self.place = place
    self.sentence = sentence
    self.since = since
  }
}

/// All problems of one kind, summarized. Used when there are too many to look at one by one.
public struct ProblemKind: Hashable, Sendable {
  public var kind: Problem.Kind
  /// The severity of the most urgent of them.
  public var severity: Problem.Severity
  /// When the first of them began or was found, in milliseconds since 1970.
  public var since: Int64
  /// How many problems there are, including those that aren't listed.
  public var count: Int
  /// A sentence about all of them; with a single problem, its own sentence.
  public var sentence: String
}

/// The thresholds at which a condition counts as a problem.
public struct ProblemLimits: Hashable, Sendable {
  /// The age of the next record of a cursor, group or subscription, in milliseconds.
  public var lag: UInt64 = 60_000
  /// How long a producer has been without demand, in milliseconds.
  public var hold: UInt64 = 10_000
  /// The share of the last minute in which a subscriber blocks producers, in thousandths.
  public var holdShare: UInt16 = 500
  /// The used fraction of the store, of the last free space of its disk, and of the memory's ceiling.
  public var fullness = 0.9
  /// Rejected logins within a minute.
  public var rejectedLogins = 5
  /// Turns of more than 134 ms of all loops within a minute.
  public var slowTurns: UInt64 = 3
  /// The most problems of one kind.
  public var perKind = 20

  public init() {}
}

/// The most urgent problems, and all of them by kind.
struct FoundProblems: Sendable {
  var problems: [Problem] = []
  var kinds: [ProblemKind] = []
}
