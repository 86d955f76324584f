import Glibc

/// A TCP connection by plain system calls, with a deadline for each wait.
///
/// Used by one thread at a time.
public final class RawSocket {
  /// The peer has ended the connection; with an error number if it was reset.
  public struct Closed: Error, CustomStringConvertible {
    public var code: Int32?
    public var description: String {
      code.map { "the connection failed with error \($0)" } ?? "the peer closed the connection"
    }
  }

  public private(set) var descriptor: Int32

  /// Connects to `HOST:PORT`, numeric.
  ///
  /// - Parameters:
  ///   - receiveBuffer: the size of the kernel's buffer in bytes; nil for the system's default.
  ///   - source: the client's numeric address; nil for the system's choice.
  public init(_ address: String, receiveBuffer: Int? = nil, from source: String? = nil) throws {
    guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...])
    else { throw TestFailure("\(address) isn't HOST:PORT") }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = port.bigEndian
    inet_pton(AF_INET, String(address[..<colon]), &target.sin_addr)
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw TestFailure("socket: error \(errno)") }
    if let receiveBuffer {
      var size = Int32(receiveBuffer)
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    var code: Int32 = 0
    if let source {
      var origin = sockaddr_in()
      origin.sin_family = sa_family_t(AF_INET)
      inet_pton(AF_INET, source, &origin.sin_addr)
      code = Self.call(Glibc.bind, descriptor, &origin)
    }
    if code == 0 { code = Self.call(Glibc.connect, descriptor, &target) }
    guard code == 0 else {
      let code = errno
      Glibc.close(descriptor)
      throw Closed(code: code)
    }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  deinit {
    close()
  }

  private static func call(
    _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: Int32,
    _ address: inout sockaddr_in
  ) -> Int32 {
    withUnsafeBytes(of: &address) {
      function(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
  }

  /// Closes it in order.
  public func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Closes it with a reset.
  public func reset() {
    var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    close()
  }

  /// Closes the sending half.
  public func endOutput() {
    shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Reads available bytes without waiting.
  ///
  /// - Returns: the number of bytes; nil if none are available.
  /// - Throws: ``Closed`` at the end.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int? {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return count }
      if count == 0 { throw Closed() }
      if errno == EINTR { continue }
      if errno == EAGAIN { return nil }
      throw Closed(code: errno)
    }
  }

  /// Writes as many bytes as the socket accepts, without waiting.
  public func write(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    while true {
      let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return count }
      if errno == EINTR { continue }
      if errno == EAGAIN { return 0 }
      throw Closed(code: errno)
    }
  }

  /// Waits until the socket is readable or, with `toWrite`, writable. Returns false on timeout.
  public func wait(toWrite: Bool = false, until deadline: Deadline) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN | (toWrite ? POLLOUT : 0)), revents: 0)
    while true {
      let count = poll(&entry, 1, deadline.milliseconds)
      if count > 0 { return true }
      if count == 0 && deadline.isOver { return false }
    }
  }
}
