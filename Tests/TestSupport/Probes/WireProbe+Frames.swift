import SluiceWire

extension WireProbe {
  /// Every type of frame except those with batches.
  public static let frameTypes: [any Frame.Type] = [
    Hello.self, Welcome.self, Ping.self, Pong.self, GoAway.self, Fault.self, Authenticate.self,
    Authenticated.self, Redirect.self,
    Subscribe.self, Subscribed.self, Demand.self, Live.self, Lag.self, Cancel.self, Cancelled.self,
    Complete.self, SubscribePattern.self, Positions.self, Matched.self, Unmatched.self, SelectTopic.self,
    Producers.self,
    PublishOpen.self, PublishOpened.self, Ack.self, Connected.self, Disconnected.self,
    JoinGroup.self, Deliveries.self, Settle.self, Commit.self,
    TopicCreate.self, TopicShow.self, TopicInfo.self, TopicList.self, Topics.self, TopicDelete.self,
    Done.self, TopicConnect.self, TopicDisconnect.self, CursorList.self, Cursors.self, CursorMove.self,
    CursorDelete.self, TopicSet.self, TopicTrim.self, ConnectionList.self, Connections.self,
    ConnectionClose.self, StateList.self, TopicStates.self, StateRestore.self, BrokerShow.self,
    BrokerInfo.self, ClusterShow.self, ClusterInfo.self,
    ClusterDrain.self, ClusterMove.self, Lend.self, Offer.self, Origin.self, Floor.self,
  ]

  // MARK: Streams

  /// Decodes `bytes` as a peer's stream, in chunks of these lengths and then the rest.
  public static func stream(_ bytes: [UInt8], chunks: [Int], openingAt side: Side?) throws {
    var decoder = FrameDecoder(maximumFrame: maximumFrame, openingAt: side)
    var rest = bytes[...]
    var frames = 0
    for length in chunks + [bytes.count] where !rest.isEmpty {
      let chunk = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      var violation: ProbeViolation?
      do {
        try withExactMemory(chunk) { chunk in
          try decoder.decode(chunk) { header, body throws(WireError) in
            frames += 1
            if body.count != Int(header.length) || body.count > maximumFrame {
              violation = ProbeViolation("a body of \(body.count) bytes for \(header)")
            }
            receive(header, body)
            return true
          }
        }
      } catch is WireError {
        return
      }
      if let violation { throw violation }
    }
    guard decoder.pendingBytes < FrameHeader.size + maximumFrame else {
      throw ProbeViolation("\(decoder.pendingBytes) bytes are kept")
    }
    guard frames * FrameHeader.size + decoder.pendingBytes <= bytes.count else {
      throw ProbeViolation("\(frames) frames came out of \(bytes.count) bytes")
    }
  }

  /// Processes a frame like either side.
  private static func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
    _ = try? header.admission(at: .broker)
    _ = try? header.admission(at: .client)
    switch header.type {
    case .deliver:
      guard let (header, batch) = try? DeliverHeader.decode(body) else { return }
      var iterator = BatchIterator(batch, count: header.count, time: 0)
      while let record = try? iterator.next() {
        if record.isAttributed { _ = try? RecordAttributes(record.body) }
      }
    case .publish:
      guard let (header, batch) = try? PublishHeader.decode(body) else { return }
      try? RecordLayout.validate(batch, count: header.count, maximumRecord: maximumRecord)
    default:
      for type in frameTypes where type.type == header.type { _ = try? type.init(body: body) }
    }
  }

  // MARK: Bodies

  /// Decodes `bytes` as the body of every type of frame. A decoded frame must be the same after encoding and decoding.
  public static func bodies(_ bytes: [UInt8]) throws {
    for type in frameTypes { try body(bytes, of: type) }
  }

  static func body<F: Frame>(_ bytes: [UInt8], of type: F.Type) throws {
    guard let frame = try? withExactMemory(bytes, { try F(body: $0) }) else { return }
    let encoded = Array(frame.encoded(stream: 1)[FrameHeader.size...])
    let again = try withExactMemory(encoded) { try F(body: $0) }
    // Texts beyond their limits are shortened by the first encoding, and by no later one.
    guard Array(again.encoded(stream: 1)[FrameHeader.size...]) == encoded else {
      throw ProbeViolation("\(frame) isn't the same after encoding")
    }
  }
}
