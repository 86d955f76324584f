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

/// A failure of a socket or a loop: the call, the system's error number, and what it concerned.
public struct IOError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The attempted action, in words for a user: "connect to 127.0.0.1:7420".
  public var action: String
  /// The system's `errno`; the nearest one where a layer over the sockets has found the error.
  public var code: Int32
  /// The peer's mistake, if a layer over the sockets ends the connection for it; nil for all other errors.
  public var fault: PeerFault?

  /// The cause, if the system's text for `code` doesn't contain it.
  public var reason: String?

  public init(action: String, code: Int32, reason: String? = nil) {
    self.action = action
    self.code = code
    self.reason = reason
  }

  /// The end of a connection whose peer has done something wrong.
  ///
  /// - Parameter reason: what that is.
  public init(action: String, fault: PeerFault, reason: String) {
    let code =
      switch fault {
      case .violation: EPROTO
      case .silence: ETIMEDOUT
      }
    self.init(action: action, code: code, reason: reason)
    self.fault = fault
  }

  /// "connect to 127.0.0.1:7420: Connection refused"
  public var description: String {
    "\(action): \(reason ?? Self.text(for: code))"
  }

  /// The system's words for an error number. From any thread.
  static func text(for code: Int32) -> String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      unsafe buffer.initialize(repeating: 0)
      // The importer sees the POSIX variant, which fills the buffer.
      guard let base = buffer.baseAddress, unsafe strerror_r(code, base, buffer.count) == 0
      else { return "error \(code)" }
      return unsafe String(cString: base)
    }
  }
}

/// A mistake of a stream's peer, by the rules of a protocol in a layer over the sockets.
public enum PeerFault: Hashable, Sendable {
  /// It has broken them.
  case violation
  /// It was silent for longer than they allow.
  case silence
}
