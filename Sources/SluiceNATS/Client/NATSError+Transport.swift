import Glibc
import SluiceIO
import SluiceTLS

extension NATSError {
  /// The error for the end of an open connection.
  init(_ error: IOError?) {
    guard let error else {
      self.init(.cutOff, "the server closed the connection")
      return
    }
    self.init(error.isTLSFailure ? Self.code(of: error) : .cutOff, "the connection was cut off: \(error)")
  }

  /// The error for a failed attempt to connect.
  init(connecting error: IOError) {
    guard !error.isTLSFailure else {
      self.init(Self.code(of: error), "\(error)")
      return
    }
    self.init(
      .connectFailed,
      error.code == ECONNREFUSED
        ? "no process listens there; is the NATS server running, and at this address?" : "\(error)")
  }

  private static func code(of error: IOError) -> Code {
    error.isCertificateRefusal ? .certificateRefused : .tlsFailed
  }
}
