import CLinux
import Glibc

/// A connected TCP socket on loopback. It is only a descriptor, which its opener must close.
struct Socket {
  let descriptor: Int32

  /// Connects to 127.0.0.1 with TCP_NODELAY. The socket blocks until `makeNonblocking()`.
  ///
  /// - Parameter receiveBuffer: the size of the kernel's receive buffer; nil for the default.
  /// - Throws: BenchError with the port, if no process listens there.
  static func connect(port: UInt16, receiveBuffer: Int? = nil) throws -> Socket {
    let socket = try open(at: port, "no connection to 127.0.0.1:\(port)") { socket, address, length in
      if let receiveBuffer { socket.set(SOL_SOCKET, SO_RCVBUF, Int32(receiveBuffer)) }
      return Glibc.connect(socket.descriptor, address, length) == 0
    }
    socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    return socket
  }

  /// Listens on 127.0.0.1; port 0 picks a free one, see `localPort`.
  static func listen(port: UInt16) throws -> Socket {
    try open(at: port, "cannot listen on 127.0.0.1:\(port)") { socket, address, length in
      socket.set(SOL_SOCKET, SO_REUSEADDR, 1)
      return Glibc.bind(socket.descriptor, address, length) == 0 && Glibc.listen(socket.descriptor, 4096) == 0
    }
  }

  /// Opens a socket and calls `body` with the address of a port. If `body` returns false, throws `failure` with the system's reason.
  private static func open(
    at port: UInt16, _ failure: String, _ body: (Socket, UnsafePointer<sockaddr>, socklen_t) -> Bool
  ) throws -> Socket {
    let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw BenchError("socket: \(errorText())") }
    let socket = Socket(descriptor: descriptor)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let isDone = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if isDone { return socket }
    let reason = errorText()
    socket.close()
    throw BenchError("\(failure): \(reason)")
  }

  /// The next waiting connection, nonblocking and with TCP_NODELAY; nil when none waits.
  func accept() -> Socket? {
    let accepted = Glibc.accept(descriptor, nil, nil)
    guard accepted >= 0 else { return nil }
    let socket = Socket(descriptor: accepted)
    socket.makeNonblocking()
    socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    return socket
  }

  /// The port that this socket is bound to.
  var localPort: UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  func makeNonblocking() {
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  /// Sets the timeout of blocking calls, after which they fail with EAGAIN.
  func setTimeout(seconds: Int) {
    var time = timeval(tv_sec: seconds, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
  }

  func set(_ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  func close() {
    Glibc.close(descriptor)
  }

}

/// The text of `errno`.
func errorText() -> String {
  String(cString: strerror(errno))
}
