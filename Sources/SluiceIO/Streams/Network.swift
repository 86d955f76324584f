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
  /// The address in fact bound: the real port where 0 was asked for.
  var address: SocketAddress { get }

  /// Stops accepting. Connections accepted before go on. From any thread.
  func close()
}

/// A connection that is being opened.
public protocol ConnectionAttempt: AnyObject {
  /// Gives up; the completion isn't called. On the loop only.
  func abandon()
}
