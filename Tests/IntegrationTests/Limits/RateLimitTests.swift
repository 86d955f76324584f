import SluiceWire
import TestSupport
import Testing

/// Rate limits of publishing and delivery: the client waits, and no record is lost. The tests check the minimum time, but not the maximum.
@Suite(.onItsOwnThread) struct RateLimitTests {
  private func seconds(_ body: () throws -> Void) rethrows -> Double {
    let start = Deadline.now
    try body()
    return Double(Deadline.now - start) / 1e9
  }

  @Test func producersAreGrantedSoManyRecordsASecond() throws {
    let broker = try BrokerProcess("--identity-publish-records", "1000")
    let client = try broker.client()
    let other = try broker.client("other")
    let time = try seconds {
      try client.openPublication("t", stream: 1)
      for number in 0..<1250 { try client.publish(["\(number)"], stream: 1) }
      try client.receiveAcknowledgements(stream: 1)
    }
    // A quarter of a second's worth was available at the start.
    #expect(time > 0.9)
    #expect(try broker.metric("publish_rate_holds") > 0)
    #expect(try broker.show("t").summary.nextOffset == 1250)
    // Another identity has its own rate.
    try other.openPublication("t", stream: 1)
    try other.publish(["x"], stream: 1)
    try other.receiveAcknowledgements(stream: 1)
  }

  @Test func publicationsOfAClientShareItsBytes() throws {
    let broker = try BrokerProcess("--identity-publish-bytes", "1MiB")
    let client = try broker.client()
    let payload = [UInt8](repeating: 1, count: 16_000)
    let time = try seconds {
      for stream in UInt32(1)...4 { try client.openPublication("t.\(stream)", stream: stream) }
      for _ in 0..<20 {
        for stream in UInt32(1)...4 { try client.publish([payload], stream: stream) }
      }
      for stream in UInt32(1)...4 { try client.receiveAcknowledgements(stream: stream) }
    }
    #expect(time > 0.8)
    // Records longer than one grant are published as well.
    for stream in 1...4 { #expect(try broker.show("t.\(stream)").summary.nextOffset == 20) }
  }

  @Test func subscribersAreSentSoMuchASecond() throws {
    let broker = try BrokerProcess("--identity-delivery-bytes", "1MiB")
    let client = try broker.client()
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    let batch = [[UInt8]](repeating: [UInt8](repeating: 1, count: 8_000), count: 16)
    for _ in 0..<16 { try producer.publish(batch, stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)
    let time = try seconds {
      try client.subscribe("t", stream: 1)
      client.subscriptions[1]!.keepsPayloads = false
      try client.receiveRecords(256, stream: 1)
    }
    #expect(time > 0.9)
    #expect(try broker.metric("delivery_rate_holds") > 0)
    // Replies don't wait for the rate.
    try client.roundTrip()
  }

  @Test func recordsToSubscribersAreCounted() throws {
    let broker = try BrokerProcess("--identity-delivery-records", "1000")
    let client = try broker.client()
    try client.publishAll((0..<1500).map { "\($0)" }, to: "t")
    let time = try seconds {
      try client.subscribe("t", stream: 1)
      try client.receiveRecords(1500, stream: 1)
      // Deliveries beyond the rate are compensated before further ones.
      try client.publishAll(["last"], to: "t")
      try client.receiveRecords(1501, stream: 1)
    }
    #expect(time > 0.9)
    #expect(client.subscriptions[1]!.texts.prefix(1500) == (0..<1500).map { "\($0)" }[...])
  }
}
