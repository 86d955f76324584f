import CLinux
import Glibc

/// The blocking exchange that opens a connection, before the loop uses the socket.
///
/// Every wait ends after ten seconds with an error. Bytes read beyond the exchange stay in `leftover`.
struct Handshake {
  let socket: Socket
  private(set) var leftover: [UInt8] = []

  init(_ target: LoadTarget) throws {
    socket = try Socket.connect(port: target.port, receiveBuffer: target.receiveBuffer)
    socket.setTimeout(seconds: 10)
  }

  func send(_ text: String) throws {
    try send(Array(text.utf8))
  }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(socket.descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw BenchError("handshake: cannot send: \(errorText())") }
      sent += count
    }
  }

  /// Reads exactly `count` bytes.
  mutating func read(_ count: Int) throws -> [UInt8] {
    while leftover.count < count { try fill() }
    defer { leftover.removeFirst(count) }
    return Array(leftover.prefix(count))
  }

  /// Reads up to the next CR LF. Returns the line without it.
  mutating func readLine() throws -> String {
    while true {
      if let end = leftover.firstIndex(of: 10) {
        let line = leftover.prefix(end).filter { $0 != 13 }
        leftover.removeFirst(end + 1)
        return String(decoding: line, as: UTF8.self)
      }
      try fill()
    }
  }

  private mutating func fill() throws {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = chunk.withUnsafeMutableBytes { recv(socket.descriptor, $0.baseAddress!, $0.count, 0) }
    guard count > 0 else {
      throw BenchError("handshake: \(count == 0 ? "the server closed the connection" : errorText())")
    }
    leftover += chunk.prefix(count)
  }
}

/// Small frames that wait to be sent to the server, in order.
struct Replies {
  private(set) var bytes: [UInt8] = []

  var isEmpty: Bool { bytes.isEmpty }

  mutating func append(_ more: [UInt8]) {
    bytes += more
  }

  /// Removes the first `count` bytes, which were sent.
  mutating func drop(_ count: Int) {
    if count == bytes.count {
      bytes.removeAll(keepingCapacity: true)
    } else {
      bytes.removeFirst(count)
    }
  }
}
