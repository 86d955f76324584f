import SluiceWire
import TestSupport

/// A minimal broker: it accepts one client and its records, and keeps the received frames.
final class PretendedBroker: Sendable {
  let address: String
  private let server: FakeServer
  private let frames: Shared<[ReceivedFrame]>

  /// - Parameter acknowledges: whether records are acknowledged.
  init(acknowledges: Bool = true) throws {
    let frames = Shared<[ReceivedFrame]>([])
    let input = Input()
    server = try FakeServer { bytes in
      guard let new = try? input.frames(in: bytes) else { return .finish([]) }
      frames.update { $0 += new }
      return .send(new.flatMap { (try? Self.answer(to: $0, acknowledges)) ?? [] })
    }
    self.frames = frames
    address = server.address
  }

  /// The received frames of this type.
  func received<F: Frame>(_ type: F.Type) throws -> [F] {
    try frames.value.filter { $0.type == F.type }.map { try $0.decode(F.self) }
  }

  private static func answer(to frame: ReceivedFrame, _ acknowledges: Bool) throws -> [UInt8] {
    switch frame.type {
    case .hello:
      return Welcome(
        maximumFrame: 1 << 20, maximumRecord: 1 << 16, maximumStreams: 100, keepalive: 0, broker: 1,
        software: "no broker"
      ).encoded(stream: 0)
    case .ping: return Pong(token: try frame.decode(Ping.self).token).encoded(stream: 0)
    case .publishOpen:
      return PublishOpened(epoch: 1, grantedThrough: Credit.unlimited).encoded(stream: frame.stream)
    case .publish where acknowledges:
      let published = try frame.body.withUnsafeBytes { body throws(WireError) in
        try PublishHeader.decode(body).header
      }
      let through = published.firstSequence + UInt64(published.count)
      return Ack(through: through, lastOffset: through - 1).encoded(stream: frame.stream)
    default: return []
    }
  }

  // Unchecked: used only on the server's thread.
  private final class Input: @unchecked Sendable {
    private var decoder = FrameDecoder(maximumFrame: 1 << 20)

    func frames(in bytes: [UInt8]) throws -> [ReceivedFrame] {
      var frames: [ReceivedFrame] = []
      try bytes.withUnsafeBytes { bytes in
        try decoder.decode(bytes) { header, body throws(WireError) in
          frames.append(ReceivedFrame(header: header, body: [UInt8](body)))
          return true
        }
      }
      return frames
    }
  }
}
