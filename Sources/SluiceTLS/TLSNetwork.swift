import Glibc
import SluiceIO
import Synchronization

/// TLS over another network: `tls://` addresses are listened at and connected to there, with TLS over what it gives. So are the addresses of
/// gateways with TLS, whose streams have the bytes of the gateway's protocol. All others are passed on as they are.
///
/// ```swift
/// let network = TLSNetwork(over: SocketNetwork(), server: try TLSServer(options))
/// ```
///
/// - A server's streams are handed out before their handshakes, which begin when they are started. One that fails is reported by
///   `streamFailed`. Nothing can be written before it is done; `streamWritable()` is called then.
/// - A client's connections are handed out when their handshakes are done. A failure's `IOError` has ``SluiceIO/IOError/isTLSFailure``, and
///   says what is wrong.
///
/// May be used from any thread, where the network beneath may.
public final class TLSNetwork: Network {
  private let beneath: any Network
  private let server: TLSServer?
  private let client: TLSClient?
  private let refused: (@Sendable (SocketAddress, IOError) -> Void)?
  private let patience: Duration
  private let loops = Mutex<[ObjectIdentifier: TLSLoop]>([:])

  /// - Parameters:
  ///   - server: needed to listen at `tls://` addresses.
  ///   - client: needed to connect to them.
  ///   - refused: called with each peer whose handshake has failed, and the reason, on its loop.
  public convenience init(
    over network: any Network, server: TLSServer? = nil, client: TLSClient? = nil,
    refused: (@Sendable (SocketAddress, IOError) -> Void)? = nil
  ) {
    self.init(over: network, server: server, client: client, refused: refused, patience: .seconds(5))
  }

  /// - Parameter patience: how long a closed stream waits for a peer that doesn't receive the remaining output.
  package init(
    over network: any Network, server: TLSServer?, client: TLSClient?,
    refused: (@Sendable (SocketAddress, IOError) -> Void)? = nil, patience: Duration
  ) {
    beneath = network
    self.server = server
    self.client = client
    self.refused = refused
    self.patience = patience
  }

  public func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    guard let name = ApplicationProtocol.of(address), let plain = address.plain else {
      return try beneath.listen(at: address, group: group, accepted: accepted)
    }
    guard let server else { throw SocketNetwork.withoutTLS("listen at \(address)") }
    do {
      try server.serve(name)
    } catch {
      throw IOError(action: "listen at \(address)", code: EPROTO, reason: error.description)
    }
    let refused = refused
    do {
      return LayeredListener(
        address,
        try beneath.listen(at: plain, group: group) { [self] stream, loop in
          guard let context = server.context(for: name) else { return stream.abort() }
          let side = TLSSide.server(context, refused: refused)
          accepted(TLSStream(stream, peer: stream.peer, side: side, shared: shared(by: loop)), loop)
        })
    } catch let error as IOError {
      throw IOError(action: "listen at \(address)", code: error.code, reason: error.reason)
    }
  }

  public func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    guard case .tls(let host, let port) = address else {
      return beneath.connect(to: address, on: loop, completion: completion)
    }
    let attempt = TLSConnect(address, completion)
    guard let client, TLSClient.isUsable(host) else {
      let error =
        client == nil
        ? SocketNetwork.withoutTLS("connect to \(address)")
        : IOError(action: "connect to \(address)", code: EINVAL, reason: "'\(host)' is no server's name")
      _ = loop.schedule(at: loop.now) { attempt.finish(.failure(error)) }
      return attempt
    }
    attempt.begin(
      on: loop, network: beneath, to: .host(host, port: port),
      side: .client(client, server: host, port: port), shared: shared(by: loop))
    return attempt
  }

  /// Adds TLS to an open connection, for protocols that begin in plain text. On the loop only; `completion` is called on it, later, exactly once
  /// unless the attempt is abandoned.
  ///
  /// - Parameters:
  ///   - transport: the connection, not started yet. It belongs to the attempt, and then to the stream that `completion` gets.
  ///   - server: the name or address that the server's certificate must be for, unless ``TLSClientOptions/serverName`` is set.
  ///   - port: the server's port, for messages and for the sessions that are kept.
  public func secure(
    _ transport: any ByteStream, server: String, port: UInt16, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    let address = SocketAddress.tls(server, port: port)
    let attempt = TLSConnect(address, completion)
    guard let client, TLSClient.isUsable(server) else {
      let error =
        client == nil
        ? SocketNetwork.withoutTLS("connect to \(address)")
        : IOError(action: "connect to \(address)", code: EINVAL, reason: "'\(server)' is no server's name")
      _ = loop.schedule(at: loop.now) {
        transport.close()
        attempt.finish(.failure(error))
      }
      return attempt
    }
    let side = TLSSide.client(client, server: server, port: port)
    let shared = shared(by: loop)
    // The caller doesn't expect the completion before it has the attempt.
    _ = loop.schedule(at: loop.now) {
      if attempt.isAbandoned {
        transport.abort()
      } else {
        attempt.secure(transport, side: side, shared: shared)
      }
    }
    return attempt
  }

  /// As many as there are loops; each keeps its loop, so that no other can be taken for it.
  private func shared(by loop: any EventLoop) -> TLSLoop {
    loops.withLock { loops in
      if let shared = loops[ObjectIdentifier(loop)] { return shared }
      let shared = TLSLoop(loop, patience: patience)
      loops[ObjectIdentifier(loop)] = shared
      return shared
    }
  }
}

/// A connection that is being opened, and then secured. On its loop only.
private final class TLSConnect: ConnectionAttempt {
  private let address: SocketAddress
  private var completion: ((Result<any ByteStream, IOError>) -> Void)?
  private var attempt: (any ConnectionAttempt)?
  private var stream: TLSStream?

  init(_ address: SocketAddress, _ completion: @escaping (Result<any ByteStream, IOError>) -> Void) {
    self.address = address
    self.completion = completion
  }

  /// Kept by the completions that it waits for.
  func begin(
    on loop: any EventLoop, network: any Network, to target: SocketAddress, side: TLSSide, shared: TLSLoop
  ) {
    attempt = network.connect(to: target, on: loop) { [self] result in
      attempt = nil
      switch result {
      case .failure(let error):
        finish(.failure(IOError(action: "connect to \(address)", code: error.code, reason: error.reason)))
      case .success(let transport): secure(transport, side: side, shared: shared)
      }
    }
  }

  func secure(_ transport: any ByteStream, side: TLSSide, shared: TLSLoop) {
    let stream = TLSStream(transport, peer: address, side: side, shared: shared)
    self.stream = stream
    stream.connect { [self] in finish($0.map { $0 }) }
  }

  func finish(_ result: Result<any ByteStream, IOError>) {
    stream = nil
    let completion = completion
    self.completion = nil
    if let completion { completion(result) } else if case .success(let stream) = result { stream.abort() }
  }

  var isAbandoned: Bool { completion == nil }

  func abandon() {
    let dropped = completion
    completion = nil
    _ = consume dropped
    attempt?.abandon()
    attempt = nil
    stream?.abort()
    stream = nil
  }
}
