import SluiceIO
import SluiceWire
import TestSupport

/// Frames of every type that a client sends, valid and invalid, made from a seed, a few at a time.
///
/// They write only to their own topics and read those of other peers, which must still get all their records.
struct Storm {
  struct Gust {
    var frames: [UInt8]
    var pause: Duration
    /// Whether the client stops reading meanwhile.
    var stopsReading: Bool
  }

  private var frames: ProbeFrames
  private var random: SluiceIO.SeededRandom
  private var connections = 1

  private static let mostConnections = 12

  init(seed: UInt64, topic: String) {
    random = SluiceIO.SeededRandom(seed: seed)
    let length = random.next(in: 50...1_500)
    var bytes: [UInt8] = []
    for _ in 0..<length { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
    frames = ProbeFrames(ProbeInput(bytes))
    frames.topics = [
      "storm", "storm.a", "storm.b", "storm.c", "storm.d", "_inbox.storm", "$storm", "storm..",
    ]
    frames.readTopics = Array(repeating: topic, count: 6)
    frames.disorder = 0xFC
  }

  /// Starts on another connection. Returns false if the storm has ended.
  mutating func startOver() -> Bool {
    frames.startOver()
    connections += 1
    return connections <= Self.mostConnections && !frames.input.isEmpty
  }

  /// Nil if the storm has ended.
  mutating func next() -> Gust? {
    guard !frames.input.isEmpty else { return nil }
    var bytes: [UInt8] = []
    for _ in 0..<random.next(in: 1...4) { bytes += frames.fromClient() }
    return Gust(
      frames: bytes, pause: random.next(in: .zero ... .milliseconds(8)), stopsReading: random.oneIn(10))
  }

  /// Checks that a broker may send the frame.
  static func check(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    guard try header.admission(at: .client) == .take else { return }
    if header.type == .deliver {
      let (front, batch) = try DeliverHeader.decode(body)
      var iterator = BatchIterator(batch, count: front.count, time: 0)
      while try iterator.next() != nil {}
    }
    for type in WireProbe.frameTypes where type.type == header.type { _ = try type.init(body: body) }
  }
}
