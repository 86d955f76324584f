import SluiceIO

/// The connection that a client has, or the attempt to make one: at most one at a time, each of which takes the place of the one before.
///
/// It knows whether bytes get through, and nothing of what they say, which is the session's affair. On the loop only.
final class NATSLine {
  /// The result of a write.
  enum Written {
    /// Nothing is known of the server by it.
    case quiet
    /// The transport was full, and has taken something since.
    case progress
    /// The connection has failed, and is to be ended: see ``NATSLine/end(_:)``.
    case failed(IOError)
  }

  private let connector: NATSConnector
  private var connection: NATSConnection?
  /// The transport had no room for all of the output.
  private var isFull = false

  init(_ connector: NATSConnector) {
    self.connector = connector
  }

  /// Whether this is the present connection, and not one that is on its way out.
  func has(_ connection: NATSConnection) -> Bool { connection === self.connection }

  /// Makes a connection to a server; see ``NATSConnector/connect(to:certificateName:_:)``.
  func connect(
    to address: NATSAddress, certificateName: String,
    _ done: @escaping (Result<NATSConnector.Opened, NATSError>) -> Void
  ) {
    connector.connect(to: address, certificateName: certificateName, done)
  }

  /// Takes a connection that was made, and is to be started.
  func take(_ connection: NATSConnection) {
    self.connection = connection
    isFull = false
  }

  /// Adds TLS to the connection, if it is still there.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/tlsFailed``.
  func secure(_ address: NATSAddress, certificateName: String) throws(NATSError) {
    guard let connection else { return }
    connection.secure(address, certificateName: certificateName, over: try connector.tls())
  }

  /// Writes as much as the transport takes.
  func write(_ output: inout NATSOutput) -> Written {
    guard let connection else { return .quiet }
    let waiting = output.count
    if let error = connection.write(&output) { return .failed(error) }
    defer { isFull = output.count > 0 }
    return isFull && output.count < waiting ? .progress : .quiet
  }

  /// Ends the connection, which notifies its client.
  func end(_ error: IOError) { connection?.end(error) }

  /// The connection has ended by itself.
  func lost() { connection = nil }

  /// Gives up the connection, or the attempt to make one, without a word to the client.
  func drop() {
    connector.abandon()
    connection?.close()
    connection = nil
  }
}
