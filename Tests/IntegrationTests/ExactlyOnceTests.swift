import SluiceWire
import TestSupport
import Testing

/// Producers that reconnect, frame by frame.
@Suite(.onItsOwnThread) struct ExactlyOnceTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  /// Sends PUBLISH_OPEN. Returns the next expected sequence.
  private func open(
    _ client: RawClient, producer: UInt64, from first: UInt64 = 0, stream: UInt32 = 1
  ) throws -> UInt64 {
    try client.openPublication("t", stream: stream, producer: producer, from: first)
    return client.publications[stream]!.sent
  }

  @Test func aProducerIsToldWhatIsThere() throws {
    let first = try broker.client()
    #expect(try open(first, producer: 7) == 0)
    try first.publish(["a", "b", "c"], stream: 1)
    try first.receiveAcknowledgements(stream: 1)
    first.close()
    let second = try broker.client()
    #expect(try open(second, producer: 7, from: 1) == 3)
    try second.publish(["d"], stream: 1)
    try second.receiveAcknowledgements(stream: 1)
    #expect(second.publications[1]!.acknowledged == 4)
    // Other producers have their own sequences.
    #expect(try open(second, producer: 8, stream: 2) == 0)
    #expect(try open(second, producer: 0, from: 5, stream: 3) == 5)
    #expect(try broker.show("t").summary.nextOffset == 4)
    // After the topic was recreated, the producer's own sequence applies.
    try second.delete("t")
    let third = try broker.client()
    #expect(try open(third, producer: 7, from: 4) == 4)
  }

  @Test func whatWasPublishedBeforeIsNotTakenAgain() throws {
    let first = try broker.client()
    _ = try open(first, producer: 7)
    try first.publish(["a", "b"], stream: 1)
    try first.receiveAcknowledgements(stream: 1)
    let second = try broker.client()
    _ = try open(second, producer: 7)
    var batch = BatchBuilder()
    for text in ["a", "b"] { Array(text.utf8).withUnsafeBytes { batch.append($0) } }
    try second.send(raw: RawClient.publishFrame(batch, from: 0, stream: 1))
    try second.expectFault(.malformedBatch, stream: 1)
    #expect(try broker.show("t").summary.nextOffset == 2)
  }

  @Test func theLaterConnectionFencesTheEarlier() throws {
    let first = try broker.client()
    _ = try open(first, producer: 7)
    try first.publish(["a"], stream: 1)
    try first.receiveAcknowledgements(stream: 1)
    let second = try broker.client()
    #expect(try open(second, producer: 7) == 1)
    try first.expectFault(.producerFenced, stream: 1)
    // The connection stays open, but can't reopen the producer.
    try first.send(PublishOpen(topic: "t", acknowledgement: .received, producer: 7), stream: 2)
    try first.expectFault(.producerFenced, stream: 2)
    try second.publish(["b"], stream: 1)
    try second.receiveAcknowledgements(stream: 1)
    #expect(try broker.show("t").summary.nextOffset == 2)
  }

  @Test func theEndMayBeSaidAgainByWhoSaidIt() throws {
    let first = try broker.client()
    _ = try open(first, producer: 7)
    try first.publish(["a"], stream: 1)
    try first.complete(.finished, stream: 1)
    first.close()
    let second = try broker.client()
    #expect(try open(second, producer: 7) == 1)
    try second.complete(.finished, stream: 1)
    _ = try open(second, producer: 7, stream: 2)
    try second.publish(["b"], stream: 2)
    try second.expectFault(.topicEnded, stream: 2)
    for producer in [0, 8] as [UInt64] {
      try second.send(
        PublishOpen(topic: "t", acknowledgement: .received, producer: producer), stream: 3)
      try second.expectFault(.topicEnded, stream: 3)
    }
    #expect(try broker.show("t").summary.nextOffset == 1)
  }
}
