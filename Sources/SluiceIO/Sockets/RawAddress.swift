import CLinux
import Glibc

/// A socket address as the system calls take it.
struct RawAddress {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  /// A copy of an address from a system call or `getaddrinfo`.
  init(copying address: UnsafePointer<sockaddr>, length: socklen_t) {
    self.length = min(length, socklen_t(MemoryLayout<sockaddr_storage>.size))
    let count = Int(self.length)
    unsafe withUnsafeMutableBytes(of: &storage) {
      unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: count))
    }
  }

  /// Nil when the path is too long.
  init?(unixPath path: String) {
    var address = sockaddr_un()
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < capacity else { return nil }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    self.init(value: &address)
  }

  /// Nil when the host isn't a plain numeric address.
  init?(numericHost host: String, port: UInt16) {
    var four = sockaddr_in()
    if unsafe inet_pton(AF_INET, host, &four.sin_addr) == 1 {
      four.sin_family = sa_family_t(AF_INET)
      four.sin_port = port.bigEndian
      self.init(value: &four)
      return
    }
    var six = sockaddr_in6()
    if unsafe inet_pton(AF_INET6, host, &six.sin6_addr) == 1 {
      six.sin6_family = sa_family_t(AF_INET6)
      six.sin6_port = port.bigEndian
      self.init(value: &six)
      return
    }
    return nil
  }

  private init<Address>(value: inout Address) {
    length = socklen_t(MemoryLayout<Address>.size)
    unsafe withUnsafeMutableBytes(of: &storage) { bytes in
      unsafe withUnsafeBytes(of: &value) { unsafe bytes.copyMemory(from: $0) }
    }
  }

  /// The port, of an address that has one.
  var port: UInt16 {
    get {
      unsafe withUnsafeBytes(of: storage) { bytes in
        unsafe UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
      }
    }
    set {
      guard family == AF_INET || family == AF_INET6 else { return }
      unsafe withUnsafeMutableBytes(of: &storage) { bytes in
        unsafe bytes.storeBytes(of: newValue.bigEndian, toByteOffset: 2, as: UInt16.self)
      }
    }
  }

  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    unsafe withUnsafeBytes(of: storage) { bytes in
      unsafe body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
    }
  }

  /// Calls a system call such as `accept` or `getsockname` that fills in an address. Nil when the call's result is
  /// negative.
  static func filled(by call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32)
    -> (result: Int32, address: RawAddress)
  {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return unsafe withUnsafeMutableBytes(of: &storage) { bytes in
      let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      let result = unsafe call(pointer, &length)
      return unsafe (result, RawAddress(copying: pointer, length: length))
    }
  }

  /// The numeric address and port; nil for a Unix socket's, which the other side of a connection often lacks.
  var socketAddress: SocketAddress? {
    unsafe withUnsafeBytes(of: storage) { bytes in
      unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
        let base = bytes.baseAddress!
        switch family {
        case AF_INET:
          let offset = MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)!
          unsafe inet_ntop(AF_INET, base + offset, text.baseAddress, socklen_t(text.count))
        case AF_INET6:
          let address = unsafe base + MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
          // An IPv4 peer of a socket that takes both kinds: ::ffff:a.b.c.d.
          let prefix = unsafe UnsafeRawBufferPointer(start: address, count: 12)
          let isMapped = unsafe prefix.elementsEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
          unsafe inet_ntop(
            isMapped ? AF_INET : AF_INET6, address + (isMapped ? 12 : 0), text.baseAddress,
            socklen_t(text.count))
        default:
          return nil
        }
        return unsafe .host(String(cString: text.baseAddress!), port: port)
      }
    }
  }
}
