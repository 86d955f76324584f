import CLinux
import Glibc
import Synchronization

/// The handler of a listener's connections, and the loops that they are placed on.
struct AcceptedConnections: Sendable {
  typealias Handler = @Sendable (any ByteStream, any EventLoop) -> Void

  let loops: [EpollLoop]
  let placement: ConnectionPlacement
  let handler: Handler

  /// On the accepting loop.
  func place(_ descriptor: Int32, peer: SocketAddress, from current: EpollLoop) {
    let loop = loops[placement.choose(from: loops.lazy.map(\.streamCount))]
    if loop === current {
      return handler(SocketStream(loop: loop, descriptor: descriptor, peer: peer), loop)
    }
    // Counted at once, not when the other loop gets to it: the next connections of this burst must see it.
    loop.addLoad(1)
    let transit = DescriptorInTransit(descriptor)
    loop.execute { [handler] in
      let stream = SocketStream(loop: loop, descriptor: transit.take(), peer: peer)
      loop.addLoad(-1)
      handler(stream, loop)
    }
  }
}

/// A listening socket: an address of a `SocketListener`.
///
/// Unchecked: used on its loop, except for `listening`, which has a lock, and `socketFile`, a constant.
final class AcceptSource: EventSource, @unchecked Sendable {
  private let accepted: AcceptedConnections
  private let address: SocketAddress
  private let socketFile: UnixSocketFile?
  /// The descriptor; nil once closed. The lock keeps its number from being reused during an `accept`.
  private let listening: Mutex<Int32?>

  /// Connections accepted in one turn; the rest waits for the next one.
  private static let burst = 64
  /// How long to accept nothing when the process or the system has no descriptors left.
  private static let pause = Duration.milliseconds(100)

  init(
    loop: EpollLoop, descriptor: Int32, address: SocketAddress, socketFile: UnixSocketFile?,
    accepted: AcceptedConnections
  ) {
    self.accepted = accepted
    self.address = address
    self.socketFile = socketFile
    listening = Mutex(descriptor)
    super.init(loop: loop, descriptor: descriptor)
  }

  deinit {
    listening.withLock { if let open = $0 { _ = Glibc.close(open) } }
    descriptor = -1
  }

  /// On the loop.
  func begin() {
    guard listening.withLock({ $0 != nil }) else { return }
    // Without room in the kernel's table now, there may be some later.
    if (try? loop.register(self, for: .readable)) == nil { retryLater() }
  }

  override func ready(_ events: EpollEvents) {
    for _ in 0..<Self.burst {
      let connection = listening.withLock {
        descriptor -> (descriptor: Int32, peer: RawAddress, code: Int32)? in
        guard let descriptor else { return nil }
        let (accepted, peer) = Socket.accept(descriptor)
        return (accepted, peer, accepted < 0 ? errno : 0)
      }
      guard let connection else { return }
      switch connection.code {
      case 0:
        let peer = connection.peer.socketAddress ?? address
        if connection.peer.family != AF_UNIX { Socket.sendWithoutDelay(connection.descriptor) }
        accepted.place(connection.descriptor, peer: peer, from: loop)
      case EAGAIN:
        return
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        loop.deregister(self)
        return retryLater()
      default:
        // The connection was gone before it was accepted, or a signal came between: the next one.
        continue
      }
    }
  }

  private func retryLater() {
    _ = loop.schedule(after: Self.pause) { self.begin() }
  }

  /// Stops accepting at once. From any thread.
  func close() {
    socketFile?.remove()
    let wasOpen = listening.withLock { descriptor -> Bool in
      guard let open = descriptor else { return false }
      _ = Glibc.close(open)
      descriptor = nil
      return true
    }
    guard wasOpen else { return }
    if loop.isCurrent { forget() } else { loop.execute { self.forget() } }
  }

  /// The kernel forgot the descriptor when it was closed; its number may be reused by now.
  private func forget() {
    loop.dropRegistration(self)
    descriptor = -1
  }

  override func loopStopped() {
    close()
  }
}

/// An address that connections are accepted at: one listening socket, or several where a name has several addresses.
final class SocketListener: Listener {
  let address: SocketAddress
  private let sources: [AcceptSource]

  init(address: SocketAddress, sources: [AcceptSource]) {
    self.address = address
    self.sources = sources
    for source in sources { source.loop.execute { source.begin() } }
  }

  func close() {
    for source in sources { source.close() }
  }
}
