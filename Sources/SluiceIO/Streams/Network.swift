import Glibc

/// Where connections come from: the machine's sockets, or a simulated network.
public protocol Network: AnyObject, Sendable {
  /// Accepts connections at `address`, spreading them over `group`. From any thread; returns when the address is bound
  /// and connections are accepted.
  ///
  /// `accepted` is called on the loop that the new stream belongs to, before any event of the stream.
  ///
  /// - Throws: `IOError` when the address can't be bound, with the address in its message.
  func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener

  /// Opens a connection that will belong to `loop`. On that loop only; `completion` is called on it, later, exactly once.
  ///
  /// There is no time limit here: the caller keeps a timer and calls `abandon()` on what is returned; `completion` isn't called then.
  func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt
}

/// An address on which connections are accepted.
public protocol Listener: AnyObject, Sendable {
  /// The address that was bound: with the real port if port 0 was requested.
  var address: SocketAddress { get }

  /// Stops accepting. Connections accepted before stay open. From any thread.
  func close()
}

/// A connection that is being opened.
public protocol ConnectionAttempt: AnyObject {
  /// Gives up; the completion isn't called. On the loop only.
  func abandon()
}

/// Which loop of a group gets a new connection.
public enum ConnectionPlacement: Hashable, Sendable {
  /// The one with the fewest streams; the first among equals.
  case leastLoaded
  /// The first loop, until it has that many streams, then the second, and so on; when all have as many, the least
  /// loaded. Connections that talk to each other stay on one thread while there are few of them.
  case filling(upTo: Int)

  /// The index of the loop that gets the next connection.
  ///
  /// - Parameter loads: the number of streams that each loop has; not empty.
  public func choose(from loads: some Collection<Int>) -> Int {
    precondition(!loads.isEmpty, "a loop group has at least one loop")
    if case .filling(let limit) = self {
      for (index, load) in loads.enumerated() where load < limit { return index }
    }
    var best = (index: 0, load: Int.max)
    for (index, load) in loads.enumerated() where load < best.load { best = (index, load) }
    return best.index
  }
}
