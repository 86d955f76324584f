import Glibc

/// The service manager's end of `NOTIFY_SOCKET`.
public final class NotifySocket {
  /// The value of the variable.
  public let name: String
  private let directory: TemporaryDirectory
  private let descriptor: Int32

  public init(isAbstract: Bool) throws {
    directory = try TemporaryDirectory()
    name = (isAbstract ? "@" : "") + directory.file("notify")
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: name.utf8)
      if isAbstract { path[0] = 0 }
    }
    let length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + name.utf8.count)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try require(result == 0, "bind \(name): error \(errno)")
  }

  deinit {
    close(descriptor)
  }

  /// The lines of the next message.
  public func receive() throws -> [Substring] {
    let deadline = Deadline(in: Deadline.patience)
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, deadline.milliseconds) == 1 else {
      throw TestFailure("the service manager wasn't told")
    }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    try require(count >= 0, "recv: error \(errno)")
    return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
  }

  /// Whether no unread message is waiting.
  public var isSilent: Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) < 0
  }
}
