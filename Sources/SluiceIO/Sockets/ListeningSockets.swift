import Glibc
import Synchronization

/// Sockets that are bound and listen, for a server that accepts by itself: one, or several where a name has several addresses.
///
/// Closed when this object goes away, unless they were taken. From any thread.
public final class ListeningSockets: Sendable {
  /// Where they listen, with the port that was in fact bound.
  public let address: SocketAddress
  private let descriptors: Mutex<[Int32]>
  private let socketFile: UnixSocketFile?

  /// Binds, as `SocketNetwork` does.
  ///
  /// - Throws: when an address can't be bound; none is then. Addresses with TLS can't.
  public init(at address: SocketAddress) throws(IOError) {
    switch address {
    case .tls: throw SocketNetwork.withoutTLS("listen at \(address)")
    case .unix(let path):
      let (descriptor, file) = try SocketNetwork.bindUnix(path)
      self.address = address
      descriptors = Mutex([descriptor])
      socketFile = file
    case .host(let host, let port):
      let (bound, port) = try SocketNetwork.bindHost(host, port: port)
      self.address = .host(host, port: port)
      descriptors = Mutex(bound)
      socketFile = nil
    }
  }

  deinit {
    socketFile?.remove()
    for descriptor in descriptors.withLock({ $0 }) { _ = Glibc.close(descriptor) }
  }

  /// Hands over the next descriptor, which the caller closes from then on; nil when there is none left.
  public func take() -> Int32? { descriptors.withLock { $0.popLast() } }
}

extension SocketAddress {
  /// The peer's address of a connected socket; nil for a Unix socket, and when that isn't known any more.
  public init?(peerOf descriptor: Int32) {
    let (result, address) = unsafe RawAddress.filled { unsafe getpeername(descriptor, $0, $1) }
    guard result == 0, let address = address.socketAddress else { return nil }
    self = address
  }
}
