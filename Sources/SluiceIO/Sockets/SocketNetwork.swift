import Glibc

/// The machine's sockets: TCP over IPv4 and IPv6, and Unix sockets. Its loops are `EpollLoop`s.
public final class SocketNetwork: Network {
  /// Which loop of a listener's group gets a new connection.
  public let placement: ConnectionPlacement

  /// The silence after which the system probes the peer of an accepted TCP connection; zero for never. A peer whose system doesn't answer for as
  /// long again is given up. In whole seconds.
  public let keepalive: Duration
  /// The values of ``keepalive``.
  public static let keepalives: ClosedRange<Duration> = .zero ... .seconds(32_767)

  /// Connections that may wait to be accepted; the system's own limit may be lower.
  private static let backlog: Int32 = 4_096

  public init(placement: ConnectionPlacement = .leastLoaded, keepalive: Duration = .zero) {
    self.placement = placement
    self.keepalive = keepalive
  }

  /// Accepts connections at `address`. See `Network`.
  ///
  /// A name is looked up on the calling thread, which may take long, and all its addresses are listened at. A Unix
  /// socket's file without a listener is replaced; the file is removed when the listener is closed or its loop ends.
  public func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    let loops = group.loops.map { Self.own($0) }
    let connections = AcceptedConnections(loops: loops, placement: placement, handler: accepted)
    let bound = try Self.bind(address)
    if keepalive > .zero, bound.file == nil {
      // Accepted sockets inherit it from the listening one.
      for descriptor in bound.descriptors { Socket.probePeer(descriptor, after: keepalive) }
    }
    let sources = bound.descriptors.map { descriptor in
      AcceptSource(
        loop: loops[0], descriptor: descriptor, address: bound.address, socketFile: bound.file,
        accepted: connections)
    }
    return SocketListener(address: bound.address, sources: sources)
  }

  /// Opens a connection. See `Network`. A name is looked up on a thread of its own; its addresses are tried in order.
  public func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    let attempt = SocketConnect(loop: Self.own(loop), target: address, completion: completion)
    attempt.begin()
    return attempt
  }

  /// TLS is a layer over this.
  package static func withoutTLS(_ action: String) -> IOError {
    IOError(action: action, code: EPROTONOSUPPORT, reason: "TLS isn't set up")
  }

  /// Gateways are layers above this.
  package static func withoutDoors(_ action: String) -> IOError {
    IOError(action: action, code: EPROTONOSUPPORT, reason: "this program doesn't speak that protocol there")
  }

  private static func own(_ loop: any EventLoop) -> EpollLoop {
    guard let loop = loop.epoll else { preconditionFailure("sockets need a loop that watches descriptors") }
    return loop
  }

  // MARK: Binding

  /// Binds an address, or all of those that its name has. Returns where, with the port that was in fact bound.
  static func bind(
    _ address: SocketAddress
  ) throws(IOError) -> (descriptors: [Int32], address: SocketAddress, file: UnixSocketFile?) {
    switch address {
    case .tls: throw withoutTLS("listen at \(address)")
    case .door: throw withoutDoors("listen at \(address)")
    case .unix(let path):
      let (descriptor, file) = try bindUnix(path)
      return ([descriptor], address, file)
    case .host(let host, let port):
      let (descriptors, port) = try bindHost(host, port: port)
      return (descriptors, .host(host, port: port), nil)
    }
  }

  private static func bindUnix(_ path: String) throws(IOError) -> (Int32, UnixSocketFile?) {
    let action = "listen at unix:\(path)"
    guard let address = RawAddress(unixPath: path) else { throw IOError(action: action, code: ENAMETOOLONG) }
    let descriptor = Socket.open(AF_UNIX)
    guard descriptor >= 0 else { throw IOError(action: action, code: errno) }
    var result = Socket.bind(descriptor, to: address)
    if result != 0, errno == EADDRINUSE {
      if UnixSocketFile.removeStale(at: path) {
        result = Socket.bind(descriptor, to: address)
      } else {
        errno = EADDRINUSE
      }
    }
    guard result == 0, Glibc.listen(descriptor, backlog) == 0 else {
      let code = errno
      _ = Glibc.close(descriptor)
      throw IOError(action: action, code: code)
    }
    return (descriptor, UnixSocketFile(path: path))
  }

  /// Binds every address of `host` to one port. Returns the listening descriptors and the port.
  private static func bindHost(_ host: String, port: UInt16) throws(IOError) -> ([Int32], UInt16) {
    let action = "listen at \(SocketAddress.host(host, port: port))"
    let addresses = try resolved(host, port: port, action: action)
    var attempts = 1
    while true {
      do throws(IOError) {
        return try bindAll(addresses, port: port, action: action)
      } catch {
        // A free port that the first address got may be taken at the second.
        guard port == 0, error.code == EADDRINUSE, attempts < 10 else { throw error }
        attempts += 1
      }
    }
  }

  private static func bindAll(
    _ addresses: [RawAddress], port: UInt16, action: String
  ) throws(IOError) -> ([Int32], UInt16) {
    var descriptors: [Int32] = []
    var port = port
    var failure = IOError(action: action, code: EADDRNOTAVAIL)
    for var address in addresses {
      address.port = port
      let (descriptor, code) = bindOne(address)
      if code == 0 {
        descriptors.append(descriptor)
        port = Socket.localAddress(descriptor)?.port ?? port
      } else {
        failure.code = code
        // A machine without IPv6 may still give its names such an address. Anything else is for the caller to know.
        if code == EADDRNOTAVAIL || code == EAFNOSUPPORT { continue }
        for descriptor in descriptors { _ = Glibc.close(descriptor) }
        throw failure
      }
    }
    if descriptors.isEmpty { throw failure }
    return (descriptors, port)
  }

  private static func resolved(_ host: String, port: UInt16, action: String) throws(IOError) -> [RawAddress] {
    if let addresses = NameResolution.numeric(host, port: port) { return addresses }
    return try NameResolution.blocking(host, port: port, action: action).get()
  }

  private static func bindOne(_ address: RawAddress) -> (descriptor: Int32, code: Int32) {
    let descriptor = Socket.open(address.family)
    guard descriptor >= 0 else { return (-1, errno) }
    // Otherwise a broker that was just stopped keeps the next one from its port for a minute.
    Socket.set(descriptor, level: SOL_SOCKET, option: SO_REUSEADDR, to: 1)
    guard Socket.bind(descriptor, to: address) == 0, Glibc.listen(descriptor, backlog) == 0 else {
      let code = errno
      _ = Glibc.close(descriptor)
      return (-1, code)
    }
    return (descriptor, 0)
  }
}
