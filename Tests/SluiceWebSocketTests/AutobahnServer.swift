import Foundation
import Glibc
import SluiceHTTP
import SluiceTLS
import SluiceWebSocket
import TestSupport

/// An echo server for the Autobahn test suite's client: the codec and the session over a socket, one connection at a time.
///
/// Bytes are passed to the session one by one, so that a message is sent back before later bytes are answered.
final class AutobahnServer: Sendable {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutableBytes(of: &address) { bytes in
      let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return bind(descriptor, address, size) == 0 && listen(descriptor, 16) == 0
        && getsockname(descriptor, address, &size) == 0
    }
    guard isBound else { throw TestFailure("the server can't listen: error \(errno)") }
    self.descriptor = descriptor
    port = UInt16(bigEndian: address.sin_port)
    Thread {
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        Self.talk(over: connection)
        close(connection)
      }
    }.start()
  }

  /// Stops accepting connections.
  func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  deinit { close(descriptor) }

  private static func talk(over connection: Int32) {
    var reader = HTTPHeadReader()
    let limits = WebSocketDecoder.Limits(frame: 64 << 20, message: 64 << 20)
    var session = WebSocketSession(
      .server, WebSocketSession.Rules(limits: limits, takesText: true, pingAfter: 0), now: 0)
    var isOpen = false
    while var bytes = read(from: connection) {
      if !isOpen {
        guard let found = try? bytes.withUnsafeBytes({ try reader.take($0) }) else { continue }
        send(answer(to: found.head), over: connection)
        isOpen = true
        bytes.removeFirst(found.taken)
      }
      guard play(bytes, &session, over: connection) else { return }
    }
  }

  /// Returns whether the connection continues.
  private static func play(
    _ bytes: [UInt8], _ session: inout WebSocketSession, over connection: Int32
  ) -> Bool {
    for byte in bytes {
      var (output, echo): ([UInt8], [UInt8]) = ([], [])
      var isOver = false
      var single = [byte]
      single.withUnsafeMutableBytes { chunk in
        session.receive(chunk, now: 0, output: &output) { action in
          switch action {
          case .part(let isText, let part, let isFirst, let isLast, _):
            // Messages are also sent back frame by frame.
            WebSocketEncoder.append(
              isFirst ? (isText ? .text : .binary) : .continuation, part, isFinal: isLast, to: &echo)
          case .end: isOver = true
          }
        }
      }
      send(echo + output, over: connection)
      if isOver { return false }
    }
    return true
  }

  private static func answer(to request: HTTPRequestHead) -> [UInt8] {
    let upgrade = WebSocketUpgrade(WebSocketUpgrade.Rules(subprotocols: []), sha1: { sha1($0) })
    let accept = upgrade.accept(request.values("sec-websocket-key").first ?? "")
    let lines = [
      "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
      "Sec-WebSocket-Accept: \(accept)", "", "",
    ]
    return Array(lines.joined(separator: "\r\n").utf8)
  }

  private static func read(from connection: Int32) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(connection, &bytes, bytes.count, 0)
    return count > 0 ? Array(bytes[..<count]) : nil
  }

  private static func send(_ bytes: [UInt8], over connection: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}
