import SluiceWire
import TestSupport
import Testing

/// Timeouts for connections that are idle or don't make progress.
@Suite(.onItsOwnThread) struct DeadlineTests {
  @Test func whoHasNothingOpenIsTurnedOutAndOthersStay() throws {
    let broker = try BrokerProcess("--idle-timeout", "300ms")
    let subscriber = try broker.client("subscriber")
    try subscriber.subscribe("t", stream: 1)
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    let idle = try broker.client("idle")
    // PINGs don't count as use of the connection.
    try idle.send(Ping(token: 1), stream: 0)
    _ = try idle.expect(Pong.self, stream: 0)
    let fault = try idle.expectFault(.idleTimeout, stream: 0)
    #expect(fault.message.contains("--idle-timeout"))
    try idle.expectEnd()
    #expect(try broker.metric("idle_timeouts") == 1)

    try producer.publish(["a"], stream: 1)
    try subscriber.receiveRecords(1, stream: 1)
    // The timeout starts once its last stream has ended.
    try subscriber.cancel(stream: 1)
    _ = try subscriber.receive("ERROR") { $0.stream == 0 && $0.type == .error }
    try producer.roundTrip()
  }

  @Test func whoReadsNothingIsGivenUpWhateverItSends() throws {
    let broker = try BrokerProcess("--write-timeout", "1s", "--replay-bytes", "16MiB")
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    let patient = try broker.client("patient", receiveBuffer: 4096)
    try patient.sendSubscribe("t", stream: 1, granted: 1)
    let stuck = try broker.client("stuck", receiveBuffer: 4096)
    try stuck.sendSubscribe("t", stream: 1)
    let batch = [[UInt8]](repeating: [UInt8](repeating: 1, count: 64_000), count: 16)
    // More than the system buffers for a socket.
    for _ in 0..<24 { try producer.publish(batch, stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)
    try eventually("the stuck one is gone") {
      // It still sends PINGs.
      try? stuck.enqueue(raw: Ping(token: 7).encoded(stream: 0))
      return try broker.show("t").summary.subscriptions == 1
    }
    #expect(try broker.metric("write_timeouts") == 1)
    // The broker writes nothing to a subscriber without demand, which stays connected.
    try patient.receiveRecords(1, stream: 1)
    try patient.roundTrip()
    try producer.roundTrip()
  }
}
