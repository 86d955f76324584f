import SluiceWire
import TestSupport
import Testing

/// Limits of connections' buffers: incomplete frames, unread replies.
@Suite(.onItsOwnThread) struct BufferLimitTests {
  @Test func whoHasTheMostWaitingGoesFirst() throws {
    let broker = try BrokerProcess("--max-buffered", "4MiB", "--loops", "2")
    let witness = try broker.client("witness")
    try witness.openPublication("t", stream: 1)
    let small = try broker.client("small")
    try small.send(raw: partOfAFrame(100_000))
    // Six clients each send a megabyte of a frame that they never finish.
    let greedy = try (0..<6).map { try broker.client("greedy \($0)") }
    for client in greedy { try? client.send(raw: partOfAFrame(1 << 20)) }
    try eventually("some are closed") { try broker.metric("closed_for_buffering") >= 2 }
    // A decoder's memory grows in steps, and counts.
    try eventually("the rest fits") { try broker.metric("buffered_bytes") <= 4 << 20 }
    var told = 0
    for client in greedy {
      while let frame = try client.receiveIfAny(within: 0.2) {
        if frame.type == .error, try frame.decode(Fault.self).code == .limitReached { told += 1 }
      }
    }
    #expect(told >= 1)
    try witness.publish(["a"], stream: 1)
    try witness.receiveAcknowledgements(stream: 1)
    // The small client wasn't closed, and may finish its frame once there is room.
    for client in greedy { client.close() }
    try eventually("nothing is left of them") { try broker.metric("buffered_bytes") < 200_000 }
    try small.send(raw: [UInt8](repeating: 0, count: 2_000_000 - 100_000))
    try small.roundTrip()
    try eventually("nothing waits any more") { try broker.metric("buffered_bytes") == 0 }
  }

  /// The start of an ignorable frame of 2,000,000 bytes.
  private func partOfAFrame(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size + count)
    bytes.withUnsafeMutableBytes {
      FrameHeader(length: 2_000_000, type: FrameType(rawValue: 0x90), stream: 0).write(at: $0.baseAddress!)
    }
    return bytes
  }

  @Test func soMuchIsGatheredAtATime() throws {
    /// The number of frames that deliver 200 kB published as one batch.
    func frames(_ options: String...) throws -> Int {
      let client = try BrokerProcess(options: options).client()
      try client.openPublication("t", stream: 1)
      try client.publish([[UInt8]](repeating: [UInt8](repeating: 1, count: 1_000), count: 200), stream: 1)
      try client.receiveAcknowledgements(stream: 1)
      try client.subscribe("t", stream: 2)
      try client.receiveRecords(200, stream: 2)
      return client.subscriptions[2]!.batches
    }
    #expect(try frames("--write-batch", "4KiB") >= 40)
    #expect(try frames() < 10)
  }

  @Test func placesOfPatternsHaveTheirLimit() throws {
    let broker = try BrokerProcess("--max-positions-bytes", "64KiB")
    let client = try broker.client()
    let positions = (0..<100).map { TopicPosition(topic: "a.\($0)", epoch: 1, nextOffset: 0) }
    try client.send(
      SubscribePattern(pattern: "a.*", grantedThrough: 1, positions: positions, more: true), stream: 1)
    for _ in 0..<20 { try client.send(Positions(positions, more: true), stream: 1) }
    let fault = try client.receive("ERROR") { $0.stream == 1 }.decode(Fault.self)
    #expect(fault.code == .limitReached)
    try client.roundTrip()
    #expect(try broker.metric("refused_oversizes") == 1)
    #expect(try broker.metric("buffered_bytes") < 64 << 10)
  }
}
