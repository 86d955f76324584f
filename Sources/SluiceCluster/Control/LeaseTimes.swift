import SluiceIO

/// The times of a node's lease.
///
/// A node believes in its lease for ``lease`` less ``margin`` after it has sent the last renewal that was stored; the others let it go on for
/// ``lease`` after they have received that renewal. Both are measured by each node's own monotonic clock, so that wall clocks don't matter. The
/// margin covers the difference in speed of two clocks over one lease.
public struct LeaseTimes: Hashable, Sendable {
  /// How long a node may be silent before another one ends its session. Default: 2 s.
  public var lease = Duration.seconds(2)
  /// How long before that the node itself stops. Default: 300 ms.
  public var margin = Duration.milliseconds(300)
  /// How often the lease is renewed. Default: 500 ms.
  public var renewal = Duration.milliseconds(500)
  /// How long the engine may take to store a renewal or any other message, before its outcome is looked up. Default: 1 s.
  public var answer = Duration.seconds(1)
  /// How long to wait before something that has failed is tried again. Default: 100 ms.
  public var retry = Duration.milliseconds(100)
  /// How long a server of the engine may leave all that the node asks without an answer while its lease isn't valid, before the node tries another one:
  /// longer than the rest of the engine's own elections, during which no server does: they take up to 9 s, and the lease is valid for nearly 2 s of that.
  /// Default: 8 s.
  public var patience = Duration.seconds(8)
  /// How long a node waits, after it has joined, before it takes shards that have no owner and didn't lose one by its death: those of a new cluster, and those
  /// that a whole cluster gave up when it was stopped. Nodes that start together find each other meanwhile, so that each takes its own share. Shards of a
  /// dead node, and shards that another node hands over, aren't delayed. Default: 250 ms; zero: no wait.
  public var initialDelay = Duration.milliseconds(250)

  public init() {}

  /// How long a node believes in its lease.
  var belief: Duration { lease - margin }
}
