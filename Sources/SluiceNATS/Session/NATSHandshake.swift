import SluiceIO

/// The beginning of a connection: the server's INFO, TLS if either side requests it, and CONNECT with the credentials.
///
/// ```
///   greeting ── INFO ──┬─► securing ── TLS in place ──┬─► authenticating ── PONG ──► done
///                      └──────────────────────────────┘
/// ```
///
/// A value: an event in, an action out.
struct NATSHandshake {
  enum Step: Hashable {
    /// Waiting for INFO.
    case greeting
    /// Waiting for TLS.
    case securing
    /// CONNECT was sent, and its PONG hasn't arrived.
    case authenticating
  }

  enum Action {
    case none
    /// Add TLS to the connection.
    case secure
    /// Send CONNECT and PING.
    case connect(NATSConnectOptions)
  }

  private(set) var step = Step.greeting
  private let address: NATSAddress
  private let options: NATSOptions
  private let credentials: NATSCredentials
  private var isSecure: Bool

  /// - Parameters:
  ///   - address: the server's address.
  ///   - isSecure: whether the connection has TLS already.
  ///   - credentials: the credentials for this connection.
  ///   - options: the client's name, and whether secrets may be sent in plain text.
  init(with address: NATSAddress, isSecure: Bool, credentials: NATSCredentials, _ options: NATSOptions) {
    self.address = address
    self.isSecure = isSecure
    self.credentials = credentials
    self.options = options
  }

  /// Handles INFO.
  ///
  /// - Throws: the reason why the connection can't be used.
  mutating func received(_ info: NATSServerInfo) throws(NATSError) -> Action {
    guard step == .greeting else { return .none }
    guard info.hasHeaders else {
      throw NATSError(.protocolViolation, "the server has no message headers; use version 2.10 or later")
    }
    guard !isSecure, address.requiresTLS || info.requiresTLS else { return try authenticate(info) }
    guard info.requiresTLS || info.offersTLS else {
      throw NATSError(
        .tlsFailed,
        "the server has no TLS, which the address asks for; set up TLS at the server or use nats://")
    }
    step = .securing
    return .secure
  }

  /// Called when TLS is in place.
  ///
  /// - Parameter info: the server's last INFO.
  /// - Throws: the reason why the connection can't be used.
  mutating func secured(_ info: NATSServerInfo) throws(NATSError) -> Action {
    guard step == .securing else { return .none }
    isSecure = true
    return try authenticate(info)
  }

  private mutating func authenticate(_ info: NATSServerInfo) throws(NATSError) -> Action {
    if credentials.isSecretSent, !isSecure, !options.allowsPlaintextCredentials,
      !address.socketAddress.isOnThisMachine
    {
      throw NATSError(
        .insecureConnection,
        "the password or token wasn't sent, since the connection isn't encrypted; use tls:// or credentials that are only signed with"
      )
    }
    let connect = try NATSConnectOptions(
      name: options.name, isSecure: isSecure, credentials: credentials, nonce: info.nonce)
    step = .authenticating
    return .connect(connect)
  }
}
