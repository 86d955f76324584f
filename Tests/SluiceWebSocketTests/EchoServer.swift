import SluiceWebSocket
import TestSupport

/// A client's observation of a server that echoes messages.
enum Seen: Equatable, CustomStringConvertible {
  case text([UInt8])
  case binary([UInt8])
  case pong([UInt8])
  case close(UInt16)
  /// The server has closed the transport.
  case end

  static func text(_ text: String) -> Seen { .text(Array(text.utf8)) }
  static func pong(_ text: String) -> Seen { .pong(Array(text.utf8)) }

  var description: String {
    switch self {
    case .text(let bytes): "text of \(bytes.count): \(bytes.prefix(20).map { $0 })"
    case .binary(let bytes): "binary of \(bytes.count): \(bytes.prefix(20).map { $0 })"
    case .pong(let bytes): "pong \(bytes)"
    case .close(let code): "close \(code)"
    case .end: "end"
    }
  }
}

/// A server that sends every message back, connected to the client's decoder.
struct EchoServer {
  private(set) var session: WebSocketSession
  private(set) var seen: [Seen] = []
  private var message: [UInt8] = []
  private var isEnded = false
  private var client = WebSocketDecoder(
    .client, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1))

  init(
    frame: UInt64 = 1 << 20, message: UInt64 = 1 << 20, takesText: Bool = true, pingAfter: UInt64 = 0
  ) {
    let rules = WebSocketSession.Rules(
      limits: WebSocketDecoder.Limits(frame: frame, message: message), takesText: takesText,
      pingAfter: pingAfter, patience: 10)
    session = WebSocketSession(.server, rules, now: 0)
  }

  /// Passes bytes from the client.
  mutating func receive(_ bytes: [UInt8], now: UInt64 = 0) {
    // Bytes after the end of the transport can't arrive.
    guard !isEnded else { return }
    var output: [UInt8] = []
    var (message, isEnded) = (message, isEnded)
    withWritable(bytes) { chunk in
      session.receive(chunk, now: now, output: &output) { action in
        // This closure doesn't own the output: echoes are collected and appended later.
        switch action {
        case .part(let isText, let part, _, let isLast, _):
          message += Array(part)
          if isLast {
            echoes.append((isText, message))
            message = []
          }
        case .end: isEnded = true
        }
      }
    }
    self.message = message
    finish(output, isEnded)
  }

  mutating func close(_ code: WebSocketCloseCode, now: UInt64 = 0) {
    var output: [UInt8] = []
    session.close(code, reason: "why", now: now, output: &output)
    finish(output, false)
  }

  mutating func tick(_ now: UInt64) {
    var output: [UInt8] = []
    var ended = false
    session.tick(now: now, output: &output) { action in if case .end = action { ended = true } }
    finish(output, ended)
  }

  private(set) var pingsSeen = 0
  private var echoes: [(isText: Bool, [UInt8])] = []

  /// Lets the client read the output. A pong for a ping between two messages of one chunk is read before their echoes.
  private mutating func finish(_ output: [UInt8], _ ended: Bool) {
    var sent: [UInt8] = []
    for echo in echoes {
      echo.1.withUnsafeBytes { WebSocketEncoder.append(echo.isText ? .text : .binary, $0, to: &sent) }
    }
    echoes = []
    sent += output
    var message: [UInt8] = []
    var seen: [Seen] = []
    var pings = 0
    withWritable(sent) { chunk in
      do throws(WebSocketError) {
        try client.decode(chunk) { event throws(WebSocketError) in
          switch event {
          case .part(let isText, let part, _, let isLast, _):
            message += Array(part)
            if isLast {
              seen.append(isText ? .text(message) : .binary(message))
              message = []
            }
          case .ping: pings += 1
          case .pong(let payload): seen.append(.pong(Array(payload)))
          case .close(let code, _): seen.append(.close(code.rawValue))
          }
        }
      } catch {
        fatalError("the server has sent what a client refuses: \(error)")
      }
    }
    pingsSeen += pings
    self.seen += seen
    if ended {
      isEnded = true
      self.seen.append(.end)
    }
  }
}

/// Writable memory of exactly these bytes.
func withWritable(_ bytes: [UInt8], _ body: (UnsafeMutableRawBufferPointer) -> Void) {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: bytes)
  body(memory)
}

/// A frame of a client, valid or invalid.
func frame(
  _ opcode: UInt8, _ payload: [UInt8] = [], fin: Bool = true, rsv: UInt8 = 0,
  mask: [UInt8]? = [0x37, 0xFA, 0x21, 0x3D]
) -> [UInt8] {
  var bytes = [(fin ? 0x80 : 0) | rsv << 4 | opcode]
  let masked: UInt8 = mask == nil ? 0 : 0x80
  switch payload.count {
  case ...125: bytes.append(masked | UInt8(payload.count))
  case ...0xFFFF: bytes += [masked | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
  default:
    bytes.append(masked | 127)
    bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
  }
  guard let mask else { return bytes + payload }
  return bytes + mask + payload.enumerated().map { $0.element ^ mask[$0.offset % 4] }
}

func frame(_ opcode: UInt8, _ text: String, fin: Bool = true, rsv: UInt8 = 0) -> [UInt8] {
  frame(opcode, Array(text.utf8), fin: fin, rsv: rsv)
}

func closeFrame(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
  frame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
}
