import SluiceIO
import SluiceTLS

/// Opens connections to NATS servers, one at a time: the transport, with TLS if the client begins with TLS.
///
/// On the loop only.
final class NATSConnector {
  /// A stream to a server, and whether it has TLS already.
  typealias Opened = (stream: any ByteStream, isSecure: Bool)

  private let network: any Network
  private let loop: any EventLoop
  private let options: NATSOptions
  /// TLS over the network. Created when it is first needed, since that reads the system's authorities.
  private var secureNetwork: TLSNetwork?
  private var attempt: (any ConnectionAttempt)?

  /// - Parameters:
  ///   - addresses: the servers. TLS is set up at once if one of them needs it, or if it has settings.
  ///   - options: the settings of TLS, and whether it comes first.
  ///   - network: the network that opens connections, without TLS.
  ///   - loop: the loop of the connections.
  /// - Throws: ``NATSError/Code-swift.struct/tlsFailed`` when a file of ``NATSOptions/tls`` can't be used.
  init(
    _ addresses: [NATSAddress], _ options: NATSOptions, _ network: any Network, on loop: any EventLoop
  ) throws(NATSError) {
    self.network = network
    self.loop = loop
    self.options = options
    if addresses.contains(where: \.requiresTLS) || options.tls != NATSOptions.defaultTLS {
      secureNetwork = try Self.secured(network, options)
    }
  }

  private static func secured(
    _ network: any Network, _ options: NATSOptions
  ) throws(NATSError) -> TLSNetwork {
    do {
      return TLSNetwork(over: network, client: try TLSClient(options.tls))
    } catch {
      throw NATSError(.tlsFailed, "TLS to the NATS servers can't be set up: \(error)")
    }
  }

  /// Returns the network that adds TLS to a connection.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/tlsFailed``.
  func tls() throws(NATSError) -> TLSNetwork {
    if let secureNetwork { return secureNetwork }
    let secured = try Self.secured(network, options)
    secureNetwork = secured
    return secured
  }

  /// Opens a connection.
  ///
  /// - Parameters:
  ///   - address: the server's address.
  ///   - certificateName: the name that the server's certificate must contain.
  ///   - done: called once, unless the attempt is abandoned. A stream is dropped if the connector isn't retained any more.
  func connect(
    to address: NATSAddress, certificateName: String,
    _ done: @escaping (Result<Opened, NATSError>) -> Void
  ) {
    attempt = network.connect(to: address.socketAddress, on: loop) { [weak self] result in
      guard let self else { return Self.drop(result) }
      attempt = nil
      switch result {
      case .success(let stream) where address.requiresTLS && options.handshakeFirst:
        secure(stream, address, certificateName, done)
      case .success(let stream): done(.success((HandoverStream(stream), false)))
      case .failure(let error): done(.failure(NATSError(connecting: error)))
      }
    }
  }

  private func secure(
    _ stream: any ByteStream, _ address: NATSAddress, _ certificateName: String,
    _ done: @escaping (Result<Opened, NATSError>) -> Void
  ) {
    let network: TLSNetwork
    do throws(NATSError) {
      network = try tls()
    } catch {
      stream.close()
      return done(.failure(error))
    }
    attempt = network.secure(stream, server: certificateName, port: address.port, on: loop) {
      [weak self] result in
      guard let self else { return Self.drop(result) }
      attempt = nil
      done(result.map { ($0, true) }.mapError { NATSError(connecting: $0) })
    }
  }

  private static func drop(_ result: Result<any ByteStream, IOError>) {
    if case .success(let stream) = result { stream.abort() }
  }

  /// Abandons the attempt, if there is one.
  func abandon() {
    attempt?.abandon()
    attempt = nil
  }
}
