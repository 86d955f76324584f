import SluiceWire
import TestSupport
import Testing

/// Records and frames that are too long, and the streams and connections that they end.
@Suite(.onItsOwnThread) struct SizeLimitTests {
  private static let record = 100_000
  private static let frame = 200_000

  private func startBroker() throws -> BrokerProcess {
    try BrokerProcess("--max-record", "\(Self.record)", "--max-frame", "\(Self.frame)")
  }

  @Test func welcomeTellsTheLimits() throws {
    let welcome = try startBroker().client().welcome!
    #expect(welcome.maximumRecord == Self.record)
    #expect(welcome.maximumFrame == Self.frame)
  }

  @Test func aRecordMayHaveExactlyTheLimit() throws {
    let client = try startBroker().client()
    let longest = [UInt8](repeating: 7, count: Self.record)
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    try client.publish([longest], stream: 2)
    try client.receiveRecords(1, stream: 1)
    try client.receiveAcknowledgements(stream: 2)
    #expect(client.subscriptions[1]!.payloads == [longest])
  }

  @Test func aRecordOverTheLimitEndsThePublicationAlone() throws {
    let client = try startBroker().client()
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    try client.openPublication("t", stream: 3)
    try client.publish([[1], [UInt8](repeating: 7, count: Self.record + 1)], stream: 2)
    let fault = try client.expectFault(.recordTooLarge, stream: 2)
    #expect(fault.message.contains("\(Self.record)"))

    // The broker accepted no record of the batch, and everything else continues.
    try client.publish([[2]], stream: 3)
    try client.receiveRecords(1, stream: 1)
    #expect(client.subscriptions[1]!.payloads == [[2]])
    try client.openPublication("t", stream: 2)
    try client.publish([[3]], stream: 2)
    try client.receiveRecords(2, stream: 1)
  }

  @Test func aFrameOverTheLimitEndsTheConnectionWithItsCause() throws {
    let broker = try startBroker()
    let client = try broker.client()
    let other = try broker.client("other")
    try client.openPublication("t", stream: 2)
    var batch = BatchBuilder()
    for _ in 0..<5 { [UInt8](repeating: 7, count: 50_000).withUnsafeBytes { batch.append($0) } }
    // Send the whole frame, if the broker waits that long: the error must arrive although the broker no longer reads.
    try? client.send(raw: RawClient.publishFrame(batch, from: 0, stream: 2))
    let fault = try client.expectFault(.frameTooLarge, stream: 0)
    #expect(fault.message.contains("\(Self.frame)"))
    try client.expectEnd()

    try other.roundTrip()
    #expect(try other.show("t").publications.isEmpty)
  }

  @Test func aFrameIsRefusedByItsHeaderAlone() throws {
    let client = try startBroker().client()
    var header = [UInt8](repeating: 0, count: FrameHeader.size)
    header.withUnsafeMutableBytes {
      FrameHeader(length: .max, type: .publish, stream: 1).write(at: $0.baseAddress!)
    }
    try client.send(raw: header)
    try client.expectFault(.frameTooLarge, stream: 0)
    try client.expectClosed()
  }

  @Test func deliveriesFitTheClientsFrames() throws {
    let broker = try startBroker()
    let client = try broker.client("small", maximumFrame: UInt32(Limits.smallestFrame))
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    for _ in 0..<4 {
      try producer.publish([[UInt8]](repeating: [UInt8](repeating: 1, count: 3000), count: 60), stream: 1)
    }
    try producer.receiveAcknowledgements(stream: 1)
    try client.sendSubscribe("t", stream: 1)
    while client.subscriptions[1]!.delivered < 240 {
      let frame = try client.receive()
      #expect(frame.body.count <= Limits.smallestFrame)
    }
  }

  @Test func aRecordThatDoesntFitTheClientsFramesEndsThatSubscriptionAlone() throws {
    let broker = try startBroker()
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    try producer.publish(
      [[1], [UInt8](repeating: 7, count: Limits.smallestFrame), [2]], stream: 1)
    try producer.receiveAcknowledgements(stream: 1)

    let client = try broker.client("small", maximumFrame: UInt32(Limits.smallestFrame))
    try client.subscribe("t", stream: 1)
    try client.receiveEnd(stream: 1)
    #expect(
      client.events(1) == [.subscribed(next: 0, live: 3), .records(0..<1), .fault(.recordTooLarge)])
    try client.subscribe("t", stream: 1, from: .offset(2))
    try client.receiveRecords(1, stream: 1)
    #expect(client.subscriptions[1]!.payloads == [[2]])
  }
}
