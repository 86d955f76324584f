import SluiceAccess

/// Who a connection's client is, where a broker asks, and what is being found out about that. Belongs to the connection's loop.
final class Admission {
  /// Nobody, who may do nothing, up to the end of the handshake.
  var identity = Identity(name: "", proof: .none, permissions: .nothing)
  /// Credentials that are being verified, those of HELLO or of AUTHENTICATE.
  var attempt: Authenticator.Attempt?
}
