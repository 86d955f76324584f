import SluiceWire
import TestSupport

/// A client that stays connected to the owner of a topic: two producers and a subscriber, which keep the records they publish and the frames they
/// receive.
final class StaleOwnerClient {
  struct Acknowledgement {
    var stream: UInt32
    var ack: Ack
    var isAwake: Bool
  }

  struct Delivery {
    var offset: UInt64
    var mark: String
    var isAwake: Bool
  }

  /// The streams of the producers, and the acknowledgement that each requests.
  static let publications: [UInt32: PublishOpen.Acknowledgement] = [2: .durable, 3: .received]
  /// The stream whose records are acknowledged only once they are on disk.
  static let durable: UInt32 = 2
  private static let subscription: UInt32 = 1

  let client: RawClient
  /// The offset at which the subscription started.
  let start: UInt64
  /// The published records, by stream.
  private(set) var sent: [UInt32: [String]] = [:]
  private(set) var acknowledgements: [Acknowledgement] = []
  private(set) var deliveries: [Delivery] = []
  /// Whether later frames were sent by an owner that had been paused.
  var isAwake = false
  private let prefix: String

  /// Connects, publishes three records on each stream, and waits until they are acknowledged.
  ///
  /// - Parameter prefix: makes the records' marks unique.
  init(_ topic: String, at address: String, prefix: String) throws {
    self.prefix = prefix
    client = try RawClient(address)
    try client.shakeHands(name: "at the owner")
    start = try client.subscribe(topic, stream: Self.subscription, from: .new).nextOffset
    client.subscriptions[Self.subscription]!.onRecord = { [unowned self] offset, body in
      deliveries.append(
        Delivery(offset: offset, mark: String(decoding: body, as: UTF8.self), isAwake: isAwake))
    }
    for (stream, acknowledgement) in Self.publications {
      try client.openPublication(topic, stream: stream, acknowledgement: acknowledgement)
      sent[stream] = []
    }
    for stream in Self.publications.keys { for _ in 0..<3 { try publish(on: stream) } }
    let deadline = Deadline(in: 30)
    while !Self.publications.keys.allSatisfy({ client.publications[$0]!.acknowledged == 3 }) {
      try require(!deadline.isOver && !isAnswered, "the owner acknowledges")
      try receive(0.01)
    }
  }

  /// Publishes `count` records on each stream, as far as they are granted.
  func publish(_ count: Int) throws {
    for stream in Self.publications.keys {
      for _ in 0..<count {
        let ledger = client.publications[stream]!
        guard ledger.end == nil, ledger.sent < ledger.granted, ledger.bytesSent + 100 < ledger.bytesGranted
        else { break }
        try publish(on: stream)
      }
    }
  }

  private func publish(on stream: UInt32) throws {
    let mark = "<\(prefix).\(stream).\(sent[stream]!.count)>"
    sent[stream]!.append(mark)
    try client.publish([mark], stream: stream)
  }

  /// Receives the next frame, if one arrives in time.
  func receive(_ seconds: Double) throws {
    guard let frame = try client.receiveIfAny(within: seconds), frame.type == .ack else { return }
    acknowledgements.append(.init(stream: frame.stream, ack: try frame.decode(Ack.self), isAwake: isAwake))
  }

  /// Receives all frames that have arrived.
  func receiveAll() throws { for _ in 0..<100 { try receive(0.001) } }

  /// Whether every record of the producers is acknowledged, or their streams have ended.
  var isAnswered: Bool {
    client.hasEnded
      || Self.publications.keys.allSatisfy { stream in
        let ledger = client.publications[stream]!
        return ledger.end != nil || ledger.sent > 3 && ledger.acknowledged == ledger.sent
      }
  }
}
