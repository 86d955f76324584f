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
    let bound = try SocketNetwork.bind(address)
    (self.address, socketFile) = (bound.address, bound.file)
    descriptors = Mutex(bound.descriptors)
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

/// The file that stands for a listening Unix socket.
struct UnixSocketFile: Sendable {
  let path: String
  private let device: dev_t
  private let number: ino_t

  /// The file at `path`, made by `bind` just now; nil if there is none.
  init?(path: String) {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return nil }
    self.path = path
    device = status.st_dev
    number = status.st_ino
  }

  /// Removes the file, unless another one has taken its place.
  func remove() {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_dev == device, status.st_ino == number else { return }
    _ = unsafe unlink(path)
  }

  /// Removes a socket's file at `path` if no process answers there: what a killed process left behind.
  ///
  /// Returns false, and removes nothing, when a process answers or the file is no socket.
  static func removeStale(at path: String) -> Bool {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return errno == ENOENT }
    guard status.st_mode & S_IFMT == S_IFSOCK, let address = RawAddress(unixPath: path) else { return false }
    let descriptor = Socket.open(AF_UNIX)
    guard descriptor >= 0 else { return false }
    defer { _ = Glibc.close(descriptor) }
    guard Socket.connect(descriptor, to: address) == ECONNREFUSED else { return false }
    return unsafe unlink(path) == 0
  }
}
