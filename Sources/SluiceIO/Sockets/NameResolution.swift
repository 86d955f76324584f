import Glibc

/// From names to addresses.
enum NameResolution {
  /// The addresses of `host` without a look-up: nil when it isn't a numeric address. Never blocks.
  static func numeric(_ host: String, port: UInt16) -> [RawAddress]? {
    if let address = RawAddress(numericHost: host, port: port) { return [address] }
    // A scope, as in fe80::1%eth0, is for the library to read.
    guard host.contains(":"), case .success(let found) = lookUp(host, port: port, flags: AI_NUMERICHOST)
    else { return nil }
    return found
  }

  /// Asks the system's resolver: blocks, possibly for many seconds.
  ///
  /// - Parameter action: what to call this in an error: "connect to example.org:7420".
  static func blocking(_ host: String, port: UInt16, action: String) -> Result<[RawAddress], IOError> {
    lookUp(host, port: port, flags: 0).mapError { failure in
      IOError(action: action, code: failure.code, reason: failure.reason)
    }
  }

  private struct Failure: Error {
    var code: Int32
    var reason: String?
  }

  private static func lookUp(_ host: String, port: UInt16, flags: Int32) -> Result<[RawAddress], Failure> {
    var hints = unsafe addrinfo()
    unsafe hints.ai_flags = flags
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, nil, &hints, &list)
    defer { unsafe freeaddrinfo(list) }
    guard code == 0 else {
      if code == EAI_SYSTEM { return .failure(Failure(code: errno)) }
      return unsafe .failure(Failure(code: EHOSTUNREACH, reason: String(cString: gai_strerror(code))))
    }
    var addresses: [RawAddress] = []
    var next = unsafe list
    while let entry = unsafe next {
      if let address = unsafe entry.pointee.ai_addr {
        var address = unsafe RawAddress(copying: address, length: entry.pointee.ai_addrlen)
        address.port = port
        addresses.append(address)
      }
      unsafe next = unsafe entry.pointee.ai_next
    }
    return .success(addresses)
  }
}
