/// What happens to a broker that somebody should know of.
public enum BrokerEvent: Hashable, Sendable {
  /// Records and connections take as much memory as they may: producers wait until there is less.
  case memoryReached(used: Int, ceiling: Int)
  /// There is room again, and producers go on.
  case memoryLeft(used: Int, ceiling: Int)
  /// A connection was closed because all together had too much waiting, and it the most.
  case closedForBuffering(connection: UInt64, client: String, bytes: Int)
}
