import COpenSSL
import Synchronization

/// A client's sessions from servers, for connections without a full handshake: the latest of each server.
///
/// May be used from any thread.
final class SessionCache: Sendable {
  /// Servers that are remembered at most; one more, and any other is forgotten.
  private static let limit = 64

  private let sessions = Mutex<[String: Session]>([:])

  /// A session of OpenSSL's, which this holds.
  ///
  /// Unchecked: sessions that were established aren't changed, and OpenSSL counts references atomically.
  @safe
  final class Session: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes over a reference.
    init(_ pointer: OpaquePointer) {
      unsafe self.pointer = unsafe pointer
    }

    deinit {
      unsafe SSL_SESSION_free(pointer)
    }
  }

  func keep(_ session: Session, for server: String) {
    sessions.withLock { sessions in
      if sessions[server] == nil, sessions.count >= Self.limit, let other = sessions.keys.first {
        sessions[other] = nil
      }
      sessions[server] = session
    }
  }

  /// The session of a server, unless the server's certificate has expired since.
  ///
  /// - Parameter time: now, in milliseconds since 1970.
  func session(for server: String, at time: Int64) -> Session? {
    sessions.withLock { sessions in
      guard let session = sessions[server] else { return nil }
      let certificate = unsafe SSL_SESSION_get0_peer(session.pointer)
      guard unsafe SSL_SESSION_is_resumable(session.pointer) == 1,
        unsafe certificate.flatMap({ unsafe Certificate.expiry($0) }).map({ $0 > time }) ?? true
      else {
        sessions[server] = nil
        return nil
      }
      return session
    }
  }

  func removeAll() {
    sessions.withLock { $0 = [:] }
  }

  /// The stored session wasn't accepted.
  func forget(_ server: String) {
    sessions.withLock { $0[server] = nil }
  }
}
