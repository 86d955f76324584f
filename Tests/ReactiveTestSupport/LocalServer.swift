import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An HTTP server on a loopback port of the system's choice, for as long as the object lives.
///
/// It answers one request per connection and records what happens.
package final class LocalServer: Sendable {
  package enum Event: Sendable, Equatable {
    case request(path: String)
    /// The client has closed a connection on which it waited for an answer.
    case hangUp(path: String)
  }

  package struct Answer: Sendable {
    package var status: Int
    package var body: String

    package init(status: Int = 200, _ body: String) {
      self.status = status
      self.body = body
    }
  }

  package let log = EventLog<Event>()
  package let port: UInt16
  private let listener: Int32

  /// Starts the server.
  ///
  /// - Parameter answer: The answer for a path; nil for none, ever.
  package init(answer: @escaping @Sendable (String) -> Answer?) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let (listener, isListening) = withUnsafeMutablePointer(to: &address) { [listener] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        (
          listener,
          bind(listener, $0, size) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &size) == 0
        )
      }
    }
    guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
    port = UInt16(bigEndian: address.sin_port)
    let log = log
    Thread.detachNewThread {
      while true {
        let connection = accept(listener, nil, nil)
        if connection < 0 { break }
        Thread.detachNewThread {
          Self.serve(connection, log: log, answer: answer)
          close(connection)
        }
      }
      close(listener)
    }
  }

  deinit {
    // Wakes the thread that accepts, which then closes the socket.
    shutdown(listener, Int32(SHUT_RDWR))
  }

  package func url(_ path: String) -> URL {
    URL(string: "http://127.0.0.1:\(port)\(path)")!
  }

  private static func serve(
    _ connection: Int32, log: EventLog<Event>, answer: @Sendable (String) -> Answer?
  ) {
    var received = ""
    var bytes = [UInt8](repeating: 0, count: 4096)
    while !received.contains("\r\n\r\n") {
      let count = read(connection, &bytes, bytes.count)
      if count <= 0 { return }
      received += String(decoding: bytes[..<count], as: UTF8.self)
    }
    let path = received.split(separator: " ").dropFirst().first.map(String.init) ?? ""
    log.append(.request(path: path))
    if let answer = answer(path) {
      let head = "HTTP/1.1 \(answer.status) -\r\nContent-Length: \(answer.body.utf8.count)\r\n"
      let text = Array((head + "Connection: close\r\n\r\n" + answer.body).utf8)
      _ = send(connection, text, text.count, Int32(MSG_NOSIGNAL))
    }
    // A client that got an answer closes its connection as well, which needs no treatment.
    while read(connection, &bytes, bytes.count) > 0 {}
    if answer(path) == nil { log.append(.hangUp(path: path)) }
  }
}

extension URLSession {
  /// A session that waits for an answer for longer than any test takes. When all tests run at a time one may be suspended for more
  /// than the usual minute, and a request that is meant to hang must not fail meanwhile.
  package static var patient: URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 3_600
    return URLSession(configuration: configuration)
  }
}
