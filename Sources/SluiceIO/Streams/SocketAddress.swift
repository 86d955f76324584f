/// Where to listen or connect: a host and port, or a Unix socket's path.
///
/// Written `HOST:PORT`, `[V6]:PORT` or `unix:PATH`.
public enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or a numeric address, without brackets. Port 0 means any free one when listening.
  case host(String, port: UInt16)
  /// A path in the file system.
  case unix(String)

  public var description: String {
    switch self {
    case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
