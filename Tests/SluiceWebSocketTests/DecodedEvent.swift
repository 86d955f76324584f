import SluiceWebSocket

/// A result of a decoder, with the parts of each message joined.
enum DecodedEvent: Equatable {
  case message(isText: Bool, [UInt8])
  case ping([UInt8])
  case pong([UInt8])
  case close(UInt16, String)

  static func all(
    in chunks: [[UInt8]], at side: WebSocketSide, frame: UInt64 = 1 << 20, message: UInt64 = 1 << 20
  ) throws -> [DecodedEvent] {
    var decoder = WebSocketDecoder(side, limits: WebSocketDecoder.Limits(frame: frame, message: message))
    var events: [DecodedEvent] = []
    var gathered: [UInt8]?
    var failure: WebSocketError?
    for chunk in chunks where failure == nil {
      withWritable(chunk) { chunk in
        do throws(WebSocketError) {
          try decoder.decode(chunk) { event throws(WebSocketError) in
            switch event {
            case .part(let isText, let bytes, let isFirst, let isLast, _):
              precondition(isFirst == (gathered == nil))
              gathered = (gathered ?? []) + Array(bytes)
              if isLast {
                events.append(.message(isText: isText, gathered ?? []))
                gathered = nil
              }
            case .ping(let bytes): events.append(.ping(Array(bytes)))
            case .pong(let bytes): events.append(.pong(Array(bytes)))
            case .close(let code, let reason):
              events.append(.close(code.rawValue, String(decoding: reason, as: UTF8.self)))
            }
          }
        } catch {
          failure = error
        }
      }
      precondition(decoder.heldBytes <= 256)
    }
    if let failure { throw failure }
    return events
  }
}
