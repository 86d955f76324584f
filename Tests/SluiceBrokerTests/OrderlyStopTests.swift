import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The shutdown of a broker on real sockets and threads.
@Suite struct OrderlyStopTests {
  @Test func whatWasWrittenReachesASlowReaderThatStillTalks() throws {
    let group = try LoopGroup.threads(count: 2)
    defer { group.stopThreads() }
    for case let loop? in group.loops.map(\.epoll) {
      // The reader is slow; delays caused by the machine must not make it time out.
      loop.execute { loop.peerPatience = .seconds(600) }
    }
    var configuration = BrokerConfiguration()
    configuration.listen = [.host(Loopback.freshHost(), port: 0)]
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    configuration.drainTime = .seconds(600)
    let broker = try Broker(
      configuration, network: SocketNetwork(), loops: BrokerLoops(serving: group, areOwned: true))
    let address = "\(try broker.start()[0])"
    let isStopped = Flag()
    broker.whenStopped { isStopped.raise() }

    let slow = try RawClient(address, receiveBuffer: 16384)
    try slow.shakeHands()
    try slow.subscribe("t", stream: 1, granted: 16)
    slow.subscriptions[1]!.keepsPayloads = false
    let producer = try RawClient(address)
    try producer.shakeHands()
    try producer.openPublication("t", stream: 1)
    let record = [UInt8](repeating: 1, count: 16384)
    try producer.publish([[UInt8]](repeating: record, count: 16), stream: 1)
    try producer.receiveAcknowledgements(stream: 1)
    broker.shutdown()
    try producer.receive(until: "GOAWAY") { producer.goAway != nil }
    producer.close()

    // The system may have all the bytes by now, and the connection may be closed. Frames that the client sends then must not destroy them.
    for round in UInt64(0)..<20 {
      pause(0.02)
      try slow.enqueue(raw: Ping(token: round).encoded(stream: 0))
    }
    #expect(!isStopped.isRaised)
    try slow.receiveRecords(16, stream: 1)
    try slow.receive(until: "GOAWAY") { slow.goAway != nil }
    // The broker also answers frames sent in time, to the end.
    while let frame = try slow.receiveIfAny(within: Deadline.patience) { #expect(frame.type == .pong) }
    try slow.expectClosed()
    slow.close()
    try eventually("the broker has stopped") { isStopped.isRaised }
  }
}
