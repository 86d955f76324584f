import SluiceWebSocket
import TestSupport

/// A server that reads compressed messages with a small buffer.
struct CompressedStream {
  private var decoder = WebSocketDecoder(
    .server, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1), compression: true)
  private let messages = WebSocketMessageReader(InflaterPool())
  private let room: UnsafeMutableRawBufferPointer
  private var message: [UInt8] = []
  /// The part whose rest the reader keeps.
  private var held: (isText: Bool, isLast: Bool)?
  private(set) var events: [DecodedEvent] = []

  /// - Parameter room: the buffer for inflated bytes.
  private init(room: UnsafeMutableRawBufferPointer) {
    self.room = room
  }

  /// The events of a stream.
  static func all(in chunks: [[UInt8]], room: Int = 4096) throws(WebSocketError) -> [DecodedEvent] {
    let (events, failure) = outcome(of: chunks, room: room)
    if let failure { throw failure }
    return events
  }

  /// The same, and the violation after them, if any.
  static func outcome(of chunks: [[UInt8]], room: Int) -> ([DecodedEvent], WebSocketError?) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
    defer { memory.deallocate() }
    var stream = CompressedStream(room: memory)
    do throws(WebSocketError) {
      for chunk in chunks { try stream.receive(chunk) }
      return (stream.events, nil)
    } catch {
      return (stream.events, error)
    }
  }

  private mutating func receive(_ bytes: [UInt8]) throws(WebSocketError) {
    var rest = bytes
    repeat {
      var (taken, failure) = (0, nil as WebSocketError?)
      withWritable(rest) { chunk in
        do throws(WebSocketError) {
          var stream = self
          defer { self = stream }
          var decoder = stream.decoder
          taken = try decoder.decode(partOf: chunk) { event throws(WebSocketError) in try stream.take(event) }
          stream.decoder = decoder
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      rest = Array(rest[taken...])
      while messages.isBlocked {
        // The reader keeps received bytes, not inflated ones.
        precondition(messages.heldBytes <= bytes.count + 64 + Inflater.size)
        let count = try messages.goOn(into: room)
        message += Array(room[..<count])
      }
      endMessage()
    } while !rest.isEmpty
    precondition(!message.isEmpty || held != nil || !decoder.isBetweenMessages || messages.heldBytes == 0)
  }

  private mutating func take(_ event: WebSocketEvent) throws(WebSocketError) -> Bool {
    switch event {
    case .part(let isText, let bytes, _, let isLast, let isCompressed):
      let count = try messages.take(bytes, isCompressed: isCompressed, isLast: isLast, into: room)
      message += Array(room[..<count])
      held = (isText, isLast)
      if !messages.isBlocked { endMessage() }
    case .ping(let bytes): events.append(.ping(Array(bytes)))
    case .pong(let bytes): events.append(.pong(Array(bytes)))
    case .close(let code, let reason):
      events.append(.close(code.rawValue, String(decoding: reason, as: UTF8.self)))
    }
    return !messages.isBlocked
  }

  private mutating func endMessage() {
    guard let part = held.take(), part.isLast else { return }
    events.append(.message(isText: part.isText, message))
    message = []
  }
}

/// A message as sent by a server with compression; nil if that isn't shorter.
func deflated(_ message: [UInt8], windowBits: Int = 15) -> [UInt8]? {
  var room = [UInt8](repeating: 0, count: message.count + 4)
  let deflater = Deflater(windowBits: windowBits)
  let count = message.withUnsafeBytes { message in
    room.withUnsafeMutableBytes { deflater.deflate(message, into: $0) }
  }
  return count.map { Array(room[..<$0]) }
}
