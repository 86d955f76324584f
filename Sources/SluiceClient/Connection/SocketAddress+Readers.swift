import SluiceIO

extension SocketAddress {
  /// Whether what is sent there may be read by others: it leaves the machine without TLS.
  var isReadByOthers: Bool { !hasTLS && !isOnThisMachine }
}

extension ClientError {
  static func readByOthers(at address: SocketAddress) -> ClientError {
    ClientError(
      .insecureConnection,
      "the client's credentials weren't sent to \(address), since others on the way could read them; use tls://, or allow it explicitly"
    )
  }
}
