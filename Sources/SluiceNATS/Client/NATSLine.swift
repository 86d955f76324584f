import SluiceIO

/// A client's connection, or its attempt to connect: at most one at a time, each replacing the one before.
///
/// It only knows whether bytes are transferred; the session interprets them. On the loop only.
final class NATSLine {
  /// The result of a write.
  enum Written {
    /// The write shows nothing about the server.
    case quiet
    /// The transport was full, and has accepted bytes since.
    case progress
    /// The connection has failed and must be ended: see ``NATSLine/end(_:)``.
    case failed(IOError)
  }

  private let connector: NATSConnector
  private var connection: NATSConnection?
  /// Whether the transport had no room for the rest of the output.
  private var isFull = false

  init(_ connector: NATSConnector) {
    self.connector = connector
  }

  /// Returns whether this is the present connection, instead of a former one.
  func has(_ connection: NATSConnection) -> Bool { connection === self.connection }

  /// Opens a connection to a server; see ``NATSConnector/connect(to:certificateName:_:)``.
  func connect(
    to address: NATSAddress, certificateName: String,
    _ done: @escaping (Result<NATSConnector.Opened, NATSError>) -> Void
  ) {
    connector.connect(to: address, certificateName: certificateName, done)
  }

  /// Sets the new connection, and starts it.
  func take(_ connection: NATSConnection) {
    self.connection = connection
    isFull = false
  }

  /// Adds TLS to the connection, if it still exists.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/tlsFailed``.
  func secure(_ address: NATSAddress, certificateName: String) throws(NATSError) {
    guard let connection else { return }
    connection.secure(address, certificateName: certificateName, over: try connector.tls())
  }

  /// Writes as much as the transport accepts.
  func write(_ output: inout NATSOutput) -> Written {
    guard let connection else { return .quiet }
    let waiting = output.count
    if let error = connection.write(&output) { return .failed(error) }
    defer { isFull = output.count > 0 }
    return isFull && output.count < waiting ? .progress : .quiet
  }

  /// Ends the connection, which notifies its client.
  func end(_ error: IOError) { connection?.end(error) }

  /// Called when the connection has ended by itself.
  func lost() { connection = nil }

  /// Drops the connection, or the attempt to connect, without notifying the client.
  func drop() {
    connector.abandon()
    connection?.close()
    connection = nil
  }
}
