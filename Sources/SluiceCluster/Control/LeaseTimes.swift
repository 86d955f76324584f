import SluiceIO

/// The times of a node's lease.
///
/// A node relies on its lease for ``lease`` less ``margin`` after it has sent the last renewal that was stored; the others respect it for ``lease`` after
/// they have received that renewal. Each node measures with its own monotonic clock, so wall clocks don't matter. The margin covers the difference in speed
/// of two clocks over one lease.
public struct LeaseTimes: Hashable, Sendable {
  /// How long a node may be silent before another one ends its session. Default: 2 s.
  public var lease = Duration.seconds(2)
  /// How long before that the node itself stops. Default: 300 ms.
  public var margin = Duration.milliseconds(300)
  /// How often the lease is renewed. Default: 500 ms.
  public var renewal = Duration.milliseconds(500)
  /// How long the engine may take to store a renewal or any other message, before the node looks up the result. Default: 1 s.
  public var answer = Duration.seconds(1)
  /// How long to wait before a failed request is retried. Default: 100 ms.
  public var retry = Duration.milliseconds(100)
  /// How long a server of the engine may leave all requests unanswered, while the node's lease isn't valid, before the node tries another server. No server
  /// answers during the engine's elections, which take up to 9 s; the lease is valid for nearly 2 s of that, and this time covers the rest. Default: 8 s.
  public var patience = Duration.seconds(8)
  /// How long a node waits after joining before it takes shards without an owner, unless their owner died: shards of a new cluster, and those that a whole
  /// cluster gave up when it was stopped. Nodes that start together find each other in that time, so each takes its own share. Shards of a dead node, and
  /// shards that another node hands over, aren't delayed. Default: 250 ms; zero: no wait.
  public var initialDelay = Duration.milliseconds(250)

  public init() {}

  /// How long a node relies on its lease.
  var belief: Duration { lease - margin }
}
