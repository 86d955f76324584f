import Glibc
import SluiceIO

/// Why a door ends a connection where its client did something wrong, or nothing: for the broker's log and numbers, like the reason for which the broker itself
/// ends one.
struct DoorFault: Hashable {
  enum Kind: Hashable {
    /// The client has broken the rules of its protocol.
    case violation
    /// The client was silent for too long.
    case silence
    /// Something else, which isn't the client's error.
    case other
  }

  var kind: Kind
  /// A sentence.
  var reason: String

  init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// How a stream says so. The broker's connection knows these numbers, which no socket fails with.
  func error(at peer: SocketAddress) -> IOError {
    let code =
      switch kind {
      case .violation: EBADMSG
      case .silence: ETIME
      case .other: ECANCELED
      }
    return IOError(action: "serve \(peer)", code: code, reason: reason)
  }
}
