/// Where to listen or connect: a host and port, with TLS or without, or a Unix socket's path.
///
/// Written `HOST:PORT`, `[V6]:PORT`, `tls://HOST:PORT` or `unix:PATH`.
public enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or a numeric address, without brackets. Port 0 means any free one when listening.
  case host(String, port: UInt16)
  /// The same with TLS over it. Only a network that was set up for it knows how.
  case tls(String, port: UInt16)
  /// A path in the file system.
  case unix(String)

  public var description: String {
    switch self {
    case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .tls(let host, let port): "tls://\(SocketAddress.host(host, port: port))"
    case .unix(let path): "unix:\(path)"
    }
  }
}
