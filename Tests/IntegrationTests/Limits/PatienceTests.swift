import Glibc
import SluiceWire
import TestSupport
import Testing

/// Timeouts of the broker. Each test compares with a broker that has no timeout and was used first: without the option it would time out first.
@Suite(.onItsOwnThread) struct PatienceTests {
  /// A client with unlimited demand that reads nothing, while more arrives than the system buffers for a socket.
  private func stuckClient(of broker: BrokerProcess) throws -> RawClient {
    let stuck = try broker.client("stuck", receiveBuffer: 4096)
    try stuck.sendSubscribe("t", stream: 1)
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    let batch = [[UInt8]](repeating: [UInt8](repeating: 1, count: 64_000), count: 16)
    for _ in 0..<16 { try producer.publish(batch, stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)
    return stuck
  }

  @Test func forAClientToIntroduceItself() throws {
    let patient = try BrokerProcess("--handshake", "15m")
    let hasty = try BrokerProcess("--handshake", "50ms")
    let silent = try (patient: patient.connect(), hasty: hasty.connect())
    let fault = try silent.hasty.expectFault(.handshakeTimeout, stream: 0)
    #expect(fault.message == "no HELLO came within 0.05 seconds")
    try silent.hasty.expectEnd()
    try silent.patient.shakeHands()
    #expect(try patient.metric("handshake_timeouts") == 0)
  }

  @Test func forSubscribersAtTheEnd() throws {
    let patient = try BrokerProcess("--drain", "15m")
    let hasty = try BrokerProcess("--drain", "50ms")
    let clients = try [patient, hasty].map(stuckClient)
    for broker in [patient, hasty] { broker.process.signal(SIGTERM) }
    #expect(try hasty.process.waitForExit() == .code(0))
    try patient.requireRunning()
    #expect(hasty.process.standardError.text.contains("stopping signal=SIGTERM drain=50ms"))
    withExtendedLifetime(clients) {}
  }

  @Test func forAClientToReadWhatItIsSent() throws {
    let patient = try BrokerProcess("--write-timeout", "15m")
    let hasty = try BrokerProcess("--write-timeout", "100ms")
    let clients = try [patient, hasty].map(stuckClient)
    try eventually("it is given up") { try hasty.metric("write_timeouts") == 1 }
    #expect(try patient.metric("write_timeouts") == 0)
    withExtendedLifetime(clients) {}
  }

  @Test func forAnySignOfLife() throws {
    let patient = try BrokerProcess("--keepalive", "15m")
    let hasty = try BrokerProcess("--keepalive", "100ms")
    let clients = try [patient, hasty].map { try $0.client("dead") }
    for client in clients { client.answersPings = false }
    let fault = try clients[1].receive("ERROR") { $0.type == .error }.decode(Fault.self)
    #expect(
      fault.code == .keepaliveTimeout && fault.message == "nothing was heard from the client for 100 ms")
    #expect(try patient.metric("keepalive_timeouts") == 0)
  }
}
