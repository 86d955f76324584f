import Glibc

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
