/// The commands of RabbitMQ's stream protocol that the load uses. A response has the top bit set.
enum RabbitKey: UInt16 {
  case declarePublisher = 1
  case publishConfirm = 3
  case subscribe = 7
  case deliver = 8
  case credit = 9
  case create = 13
  case delete = 14
  case peerProperties = 17
  case saslHandshake = 18
  case saslAuthenticate = 19
  case tune = 20
  case open = 21
  case heartbeat = 23
}

/// A frame being written: `u32 size, u16 key, u16 version` and, for requests, `u32 correlation`; all big-endian.
struct RabbitFrame {
  private let key: RabbitKey
  private var content: [UInt8] = []

  init(_ key: RabbitKey, correlation: UInt32? = nil) {
    self.key = key
    integer(key.rawValue)
    integer(UInt16(1))
    if let correlation { integer(correlation) }
  }

  mutating func integer<Value: FixedWidthInteger>(_ value: Value) {
    withUnsafeBytes(of: value.bigEndian) { content += $0 }
  }

  mutating func string(_ text: String) {
    integer(UInt16(text.utf8.count))
    content += text.utf8
  }

  mutating func bytes(_ bytes: [UInt8]) {
    integer(UInt32(bytes.count))
    content += bytes
  }

  mutating func bytes(raw bytes: [UInt8]) {
    content += bytes
  }

  /// The frame with its size before it.
  func encoded() -> [UInt8] {
    withUnsafeBytes(of: UInt32(content.count).bigEndian) { Array($0) } + content
  }

  /// Reads the next frame of a handshake.
  static func next(from handshake: inout Handshake) throws -> (key: UInt16, body: [UInt8]) {
    let size = try handshake.read(4).reduce(0) { $0 << 8 | Int($1) }
    let frame = try handshake.read(size)
    guard frame.count >= 4 else { throw BenchError("RabbitMQ sent a frame of \(size) bytes") }
    return (UInt16(frame[0]) << 8 | UInt16(frame[1]), Array(frame.dropFirst(4)))
  }

  /// Sends the frame, waits for the response to it and checks its code; 1 is success.
  func exchange(on handshake: inout Handshake, alsoAllowing other: UInt16 = 1) throws {
    try handshake.send(encoded())
    while true {
      let frame = try Self.next(from: &handshake)
      guard frame.key == key.rawValue | 0x8000 else { continue }
      let code = frame.body.count >= 6 ? UInt16(frame.body[4]) << 8 | UInt16(frame.body[5]) : 0
      guard code == 1 || code == other else { throw BenchError("RabbitMQ answered \(key) with code \(code)") }
      return
    }
  }
}
