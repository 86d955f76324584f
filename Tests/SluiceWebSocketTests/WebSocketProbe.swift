import SluiceHTTP
import SluiceWebSocket
import TestSupport

/// Passes any bytes to the readers of WebSocket connections.
enum WebSocketProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte for the side, one for how the stream is split; then the stream.
    case webSocketFrames
    /// A byte for how the stream is split, one for the size of the inflation buffer; then the stream, from a client with compression.
    case webSocketCompressedFrames
    /// A request.
    case webSocketUpgrades
  }

  static func run(_ target: Target, on input: [UInt8]) throws {
    switch target {
    case .webSocketFrames: try frames(input)
    case .webSocketCompressedFrames: try compressed(input)
    case .webSocketUpgrades: try upgrade(input)
    }
  }

  /// However the stream is split, the result is the same, little is buffered, and a client accepts the server's reply.
  private static func frames(_ bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    let side: WebSocketSide = input.bool() ? .server : .client
    let step = max(1, Int(input.byte()))
    let stream = input.remaining()
    let whole = outcome([stream], side)
    let cut = outcome(
      stride(from: 0, to: stream.count, by: step).map { Array(stream[$0..<min($0 + step, stream.count)]) },
      side)
    guard whole == cut else { throw ProbeViolation("cut every \(step) bytes: \(cut) instead of \(whole)") }
    guard side == .server else { return }
    // The echo server reads its own output as a client would, and traps if that is invalid.
    var server = EchoServer(frame: 1000, message: 2000)
    server.receive(stream)
    guard server.session.heldBytes <= 256 else {
      throw ProbeViolation("\(server.session.heldBytes) bytes are held")
    }
  }

  /// However the stream is split and however small the buffer, the result is the same.
  private static func compressed(_ bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    let step = max(1, Int(input.byte()))
    let room = 64 * (1 + Int(input.byte()))
    let stream = input.remaining()
    let chunks = stride(from: 0, to: stream.count, by: step).map {
      Array(stream[$0..<min($0 + step, stream.count)])
    }
    let whole = CompressedStream.outcome(of: [stream], room: 65_536)
    let cut = CompressedStream.outcome(of: chunks, room: room)
    guard whole == cut else {
      throw ProbeViolation("cut every \(step) bytes, with room for \(room): \(cut) instead of \(whole)")
    }
  }

  private static func outcome(_ chunks: [[UInt8]], _ side: WebSocketSide) -> String {
    var (decoder, text, parts) = (
      WebSocketDecoder(side, limits: WebSocketDecoder.Limits(frame: 1000, message: 2000)), "", [UInt8]()
    )
    for chunk in chunks {
      var isFailed = false
      withWritable(chunk) { chunk in
        do throws(WebSocketError) {
          try decoder.decode(chunk) { event throws(WebSocketError) in
            switch event {
            case .part(_, let bytes, _, let isLast, _):
              parts += Array(bytes)
              if isLast {
                text += "message \(parts);"
                parts = []
              }
            case .ping(let bytes): text += "ping \(Array(bytes));"
            case .pong(let bytes): text += "pong \(Array(bytes));"
            case .close(let code, let reason): text += "close \(code) \(Array(reason));"
            }
          }
        } catch {
          text += "\(error)"
          isFailed = true
        }
      }
      if isFailed { return text }
    }
    return text + "\(parts)"
  }

  private static func upgrade(_ bytes: [UInt8]) throws {
    let rules = WebSocketUpgrade.Rules(subprotocols: ["mqtt"], compression: true)
    let upgrade = WebSocketUpgrade(rules) { Array($0.prefix(20)) }
    var reader = HTTPHeadReader(limit: 512)
    do {
      guard let found = try withExactMemory(bytes, { try reader.take($0) }) else { return }
      let agreement = try upgrade.answer(found.head)
      guard agreement.answer.count < 300, found.taken <= 512 else {
        throw ProbeViolation("the answer has \(agreement.answer.count) bytes")
      }
    } catch let refusal as WebSocketUpgrade.Refusal {
      guard refusal.answer(at: 0).allSatisfy({ $0 >= 0x20 || $0 == 10 || $0 == 13 }) else {
        throw ProbeViolation("a refusal has a control character")
      }
    } catch is HTTPRequestHead.Fault {}
    guard reader.heldBytes <= 2048 else { throw ProbeViolation("\(reader.heldBytes) bytes are held") }
  }
}
