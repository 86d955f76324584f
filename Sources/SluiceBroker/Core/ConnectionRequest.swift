import SluiceIO
import SluiceWire

/// What a client asks about the broker's connections, which are on several loops, and of all of its topics. Completions are called once, on any loop, unless the broker stops before.
enum ConnectionRequest: Sendable {
  /// The connections with greater numbers, in the order of their numbers, at most so many; and whether more follow.
  case list(after: UInt64, limit: Int, @Sendable ([ConnectionInfo], Bool) -> Void)
  /// Closes a connection with this error; tells whether there was such a connection.
  case close(UInt64, WireError, @Sendable (Bool) -> Void)
  /// The most urgent problems.
  case problems(now: MonotonicTime, @Sendable (FoundProblems) -> Void)
}
