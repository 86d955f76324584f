import SluiceWire
import TestSupport
import Testing

/// A topic's grants to its producers, and the producer IDs that it remembers.
@Suite(.onItsOwnThread) struct ProducerLimitTests {
  /// Publishes a record with that producer ID, and disconnects.
  private func publish(_ broker: BrokerProcess, as producer: UInt64) throws {
    let client = try broker.client("producer \(producer)")
    try client.openPublication("t", stream: 1, producer: producer)
    try client.publish(["a"], stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    try client.cancel(stream: 1)
  }

  /// The next sequence that the topic expects from that producer when it returns.
  private func known(_ broker: BrokerProcess, of producer: UInt64) throws -> UInt64 {
    let client = try broker.client("producer \(producer)")
    try client.openPublication("t", stream: 1, producer: producer)
    let sent = client.publications[1]!.sent
    try client.cancel(stream: 1)
    return sent
  }

  @Test func theWindowIsWhatIsGrantedAtFirst() throws {
    let client = try BrokerProcess("--producer-window", "16", "--producer-window-bytes", "64KiB").client()
    try client.openPublication("t", stream: 1)
    #expect(client.publications[1]!.granted == 16)
    #expect(client.publications[1]!.bytesGranted == 64 << 10)
  }

  @Test func producersAreRememberedForAsLongAsWasSaid() throws {
    let (patient, forgetful) = (try BrokerProcess(), try BrokerProcess("--producer-memory", "1ms"))
    for broker in [patient, forgetful] { try publish(broker, as: 7) }
    pause(0.01)
    #expect(try known(patient, of: 7) == 1)
    #expect(try known(forgetful, of: 7) == 0)
  }

  @Test func asManyAreRememberedAsWasSaid() throws {
    let broker = try BrokerProcess("--max-producers", "2")
    for producer in UInt64(1)...3 { try publish(broker, as: producer) }
    // The third producer has displaced the first one.
    #expect(try known(broker, of: 3) == 1 && known(broker, of: 2) == 1)
    let attached = try (UInt64(4)...5).map { producer in
      let client = try broker.client()
      try client.openPublication("t", stream: 1, producer: producer)
      return client
    }
    let client = try broker.client()
    try client.send(PublishOpen(topic: "t", acknowledgement: .received, producer: 6), stream: 1)
    #expect(try client.expect(Fault.self, stream: 1).code == .limitReached)
    // A producer without an ID isn't remembered.
    try client.openPublication("t", stream: 2)
    withExtendedLifetime(attached) {}
  }
}
