import Glibc
import Synchronization
import TestSupport

/// Forwards bytes between one client and a server, until the test cuts the connection.
public final class Gate: Sendable {
  public let address: String
  private let listener: Int32
  private let isStopped = Flag()
  /// How many bytes from the client are forwarded before the connection is cut.
  private let allowed = Atomic<Int>(.max)
  private let thread = Mutex<BackgroundThread?>(nil)

  public init(to host: String) throws {
    let own = Loopback.freshHost()
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let (listener, isStopped) = (listener, isStopped)
    var target = Self.address(own, 4_222)
    guard Self.with(&target, { bind(listener, $0, $1) }) == 0, listen(listener, 16) == 0 else {
      throw TestFailure("a gate can't listen at \(own): error \(errno)")
    }
    address = "\(own):4222"
    thread.withLock {
      $0 = BackgroundThread { [unowned self] in
        while !isStopped.isRaised {
          guard Self.isReady([listener]) != nil else { continue }
          let client = accept(listener, nil, nil)
          if client >= 0 { pass(client, host) }
        }
      }
    }
  }

  deinit {
    isStopped.raise()
    thread.withLock { $0?.join() }
    close(listener)
  }

  /// Cuts the connection after `count` more bytes from the client. Takes effect once.
  public func cut(after count: Int) { allowed.store(count, ordering: .relaxed) }

  private func pass(_ client: Int32, _ host: String) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer {
      close(client)
      close(server)
    }
    var target = Self.address(host, 4_222)
    guard Self.with(&target, { connect(server, $0, $1) }) == 0 else { return }
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while !isStopped.isRaised {
      guard let ready = Self.isReady([client, server]) else { continue }
      var count = recv(ready, &chunk, chunk.count, 0)
      if count <= 0 { return }
      let left = allowed.load(ordering: .relaxed)
      var isLast = false
      if ready == client, left < .max {
        isLast = count >= left
        count = min(count, left)
        allowed.store(isLast ? .max : left - count, ordering: .relaxed)
      }
      var sent = 0
      while sent < count {
        let result = chunk.withUnsafeBytes {
          send(ready == client ? server : client, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
        }
        if result <= 0 { return }
        sent += result
      }
      guard isLast else { continue }
      // Drain the client's remaining bytes, so that they have left its socket and count as written.
      var rest = 0
      while rest < 1 << 20, Self.isReady([client]) != nil {
        let more = recv(client, &chunk, chunk.count, 0)
        if more <= 0 { break }
        rest += more
      }
      return
    }
  }

  /// The first readable descriptor, within 20 ms.
  private static func isReady(_ descriptors: [Int32]) -> Int32? {
    var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    guard poll(&entries, nfds_t(entries.count), 20) > 0 else { return nil }
    return entries.first { $0.revents != 0 }?.fd
  }

  private static func address(_ host: String, _ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, host, &address.sin_addr)
    return address
  }

  private static func with<Result>(
    _ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
