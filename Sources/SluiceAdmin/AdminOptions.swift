/// How the admin listener works.
public struct AdminOptions: Sendable {
  /// Topics that have lines of their own in the metrics; the others are summed in one.
  public var topics = 1_000
  /// Whether only this machine reaches the listener. Then it answers to names of this machine alone: see ``HostCheck``.
  public var isLocal = true
  /// What the programs' version is.
  public var version = ""
  public var limits = AdminLimits()

  public init() {}
}

/// What visitors can make the admin listener do.
public struct AdminLimits: Sendable {
  /// Connections at a time; others wait to be accepted.
  public var connections = 64
  /// Watchers of the events at a time.
  public var watchers = 32
  /// Seconds in which nothing goes to or from a connection.
  public var idle = 15
  /// Seconds that a request's head may take to come, and a connection be kept for another one; one when three quarters of the connections are in use.
  public var head = 10
  /// Seconds that an answer may take to be found and sent; events go on for ever.
  public var answer = 60
  /// Seconds that the broker may take to say what an answer is made of.
  public var source = 10
  /// Bytes for a connection's requests and responses: the head of a request has to fit into them.
  public var connectionBytes = 32 << 10
  /// Topics in one answer, and among the events.
  public var topics = 5_000
  /// Connections in one answer.
  public var listedConnections = 1_000
  /// Subscriptions, and publications, of one topic in one answer.
  public var streams = 200
  /// Records in one answer, and bytes of them.
  public var records = 100
  public var recordBytes = 8 << 20
  /// Bytes of a payload that are shown.
  public var payloadBytes = 2 << 10

  public init() {}
}
