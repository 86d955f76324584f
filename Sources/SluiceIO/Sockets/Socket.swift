import CLinux
import Glibc

/// The system calls on sockets that this module needs, with their constants and retries in one place.
enum Socket {
  /// A new socket: non-blocking, and not passed on to programs that are started. Negative when that failed; see `errno`.
  static func open(_ family: Int32) -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    return socket(family, type, 0)
  }

  static func accept(_ listener: Int32) -> (descriptor: Int32, peer: RawAddress) {
    let (result, address) = unsafe RawAddress.filled { pointer, length in
      unsafe accept4(listener, pointer, length, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
    }
    return (result, address)
  }

  static func set(_ descriptor: Int32, level: Int32, option: Int32, to value: Int32) {
    var value = value
    _ = unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Small writes go out at once: batching is done above, by the turn.
  static func sendWithoutDelay(_ descriptor: Int32) {
    set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_NODELAY, to: 1)
  }

  /// Makes the system probe the peer of a silent connection: after `silence`, and four more times within the same time again. A peer that never
  /// answers is given up then.
  static func probePeer(_ descriptor: Int32, after silence: Duration) {
    let seconds = Int32(clamping: max(1, silence.components.seconds))
    set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_KEEPIDLE, to: seconds)
    set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_KEEPINTVL, to: max(1, seconds / 4))
    set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_KEEPCNT, to: 4)
    set(descriptor, level: SOL_SOCKET, option: SO_KEEPALIVE, to: 1)
  }

  /// Closing will reset the connection instead of ending it in good order.
  static func resetOnClose(_ descriptor: Int32) {
    var value = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
  }

  /// The error that the connection ended with, or that connecting gave; 0 when there is none. Reading it clears it.
  static func takeError(_ descriptor: Int32) -> Int32 {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == 0 else { return errno }
    return value
  }

  /// Bytes that have arrived and weren't read.
  static func unreadCount(_ descriptor: Int32) -> Int { count(descriptor, UInt(FIONREAD)) }

  /// Bytes that were written and that the peer's system hasn't confirmed yet.
  static func unconfirmedCount(_ descriptor: Int32) -> Int { count(descriptor, UInt(TIOCOUTQ)) }

  private static func count(_ descriptor: Int32, _ request: UInt) -> Int {
    var count: Int32 = 0
    return unsafe ioctl(descriptor, request, &count) == 0 ? Int(count) : 0
  }

  /// The reason why the peer hasn't received written bytes, from the system's state of a TCP connection. Over a Unix socket there
  /// is no network.
  static func obstacle(_ descriptor: Int32) -> StreamObstacle {
    var state = sluice_tcp_state()
    guard unsafe sluice_tcp_look(descriptor, &state) == 0 else { return .peer }
    return obstacle(state)
  }

  /// Probes of a full window that weren't answered, from which on the peer's system counts as out of reach.
  private static let lostProbes = 3

  static func obstacle(_ state: sluice_tcp_state) -> StreamObstacle {
    // A peer that doesn't read acknowledges what it has taken, and answers probes of its full window.
    if state.retransmits > 0 || state.probes >= lostProbes { return .network }
    if state.unacknowledged == 0 || state.window < state.segment { return .peer }
    return .network
  }

  static func localAddress(_ descriptor: Int32) -> RawAddress? {
    let (result, address) = unsafe RawAddress.filled { unsafe getsockname(descriptor, $0, $1) }
    return result == 0 ? address : nil
  }

  static func bind(_ descriptor: Int32, to address: RawAddress) -> Int32 {
    unsafe address.withPointer { unsafe Glibc.bind(descriptor, $0, $1) }
  }

  /// 0, or the error number; `EINPROGRESS` when it continues in the background.
  static func connect(_ descriptor: Int32, to address: RawAddress) -> Int32 {
    while true {
      if unsafe address.withPointer({ unsafe Glibc.connect(descriptor, $0, $1) }) == 0 { return 0 }
      if errno != EINTR { return errno }
    }
  }
}

/// A descriptor that is closed with its last reference, unless it is taken. It carries a connection from the loop that
/// accepted it to another loop, which may have been stopped meanwhile.
///
/// Unchecked: it is handed from one thread to the next and used by one at a time.
final class DescriptorInTransit: @unchecked Sendable {
  private var descriptor: Int32

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  func take() -> Int32 {
    defer { descriptor = -1 }
    return descriptor
  }

  deinit {
    if descriptor >= 0 { _ = Glibc.close(descriptor) }
  }
}
