import SluiceIO
import SluiceWire

/// A client's request about the connections of all loops, or about all topics. Completions are called once, on any loop, unless the broker stops
/// before.
enum ConnectionRequest: Sendable {
  /// The connections with greater numbers, in the order of their numbers, at most `limit`; and whether more follow.
  case list(after: UInt64, limit: Int, @Sendable ([ConnectionInfo], Bool) -> Void)
  /// Closes a connection with this error, and returns whether the connection existed.
  case close(UInt64, WireError, @Sendable (Bool) -> Void)
  /// The most urgent problems.
  case problems(now: MonotonicTime, @Sendable (FoundProblems) -> Void)
}
