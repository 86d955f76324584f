import Glibc
import SluiceWire
import Synchronization

/// A server on the loopback interface that is no broker, or a faulty one: it sends scripted answers, on one connection after another.
public final class FakeServer: Sendable {
  /// The answer to received bytes.
  public enum Answer: Sendable {
    case send([UInt8])
    /// Sends the bytes, if any, and closes the connection.
    case finish([UInt8])
  }

  public let address: String
  private let listener: Int32
  private let isStopped = Flag()
  private let thread = Mutex<BackgroundThread?>(nil)

  /// - Parameter greeting: sent to each client after it connects.
  public init(
    greeting: [UInt8] = [], _ answer: @escaping @Sendable ([UInt8]) -> Answer
  ) throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.listener = listener
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    let host = Loopback.freshHost()
    inet_pton(AF_INET, host, &target.sin_addr)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &target) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 16) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    guard isBound else { throw TestFailure("a server for the test: error \(errno)") }
    address = "\(host):\(UInt16(bigEndian: target.sin_port))"
    let isStopped = isStopped
    thread.withLock {
      $0 = BackgroundThread {
        while !isStopped.isRaised {
          guard Self.isReady(listener) else { continue }
          let connection = accept(listener, nil, nil)
          if connection >= 0 { Self.serve(connection, greeting, answer, until: isStopped) }
        }
      }
    }
  }

  deinit {
    isStopped.raise()
    thread.withLock { $0?.join() }
    close(listener)
  }

  private static func isReady(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 20) > 0
  }

  private static func serve(
    _ connection: Int32, _ greeting: [UInt8], _ answer: ([UInt8]) -> Answer, until isStopped: Flag
  ) {
    defer { close(connection) }
    var next = Answer.send(greeting)
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while !isStopped.isRaised {
      switch next {
      case .send(let bytes):
        send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
      case .finish(let bytes):
        send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        return
      }
      next = .send([])
      guard isReady(connection) else { continue }
      let count = recv(connection, &chunk, chunk.count, 0)
      if count <= 0 { return }
      next = answer(Array(chunk[..<count]))
    }
  }

  /// An address without a listener, which isn't used again.
  public static func nobody() throws -> String {
    let server = try FakeServer { _ in .finish([]) }
    return server.address
  }
}
