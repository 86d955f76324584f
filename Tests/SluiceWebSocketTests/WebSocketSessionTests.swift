import SluiceWebSocket
import TestSupport
import Testing

@Suite("WebSocket session")
struct WebSocketSessionTests {
  @Test("closes first, ignores what still comes, and ends when the peer has closed too")
  func closeFirst() {
    var server = EchoServer()
    server.close(.goingAway)
    server.close(.normal)
    #expect(server.seen == [.close(1001)])
    server.receive(frame(1, "late") + frame(9, "late"))
    #expect(server.seen == [.close(1001)])
    server.receive(closeFrame(1001))
    #expect(server.seen == [.close(1001), .end])
  }

  @Test("gives up a peer that doesn't answer a Close frame")
  func closeUnanswered() {
    var server = EchoServer()
    server.close(.normal, now: 5)
    #expect(server.session.deadline == 15)
    server.tick(14)
    #expect(server.seen == [.close(1000)])
    server.tick(15)
    #expect(server.seen == [.close(1000), .end])
    #expect(server.session.deadline == nil)
  }

  @Test("pings a silent peer, and gives it up when it stays silent")
  func keepalive() {
    var server = EchoServer(pingAfter: 100)
    server.receive(frame(9), now: 50)
    server.tick(149)
    #expect(server.pingsSeen == 0)
    server.tick(150)
    server.tick(151)
    #expect(server.pingsSeen == 1)
    server.receive(frame(10), now: 159)
    server.tick(160)
    #expect(server.seen == [.pong([])])
    #expect(server.session.deadline == 259)
    server.tick(260)
    server.tick(270)
    #expect(server.pingsSeen == 2)
    #expect(server.seen == [.pong([]), .end])
  }

  @Test("refuses text where the subprotocol is binary")
  func noText() {
    var server = EchoServer(takesText: false)
    server.receive(frame(2, [1]) + frame(1, "text"))
    #expect(server.seen == [.binary([1]), .close(1003), .end])
  }

  @Test("tells a lost transport once, with the code of a Close frame that was sent")
  func lost() {
    for (closes, code) in [(false, 1006 as UInt16), (true, 1000)] {
      var session = WebSocketSession(
        .server,
        WebSocketSession.Rules(limits: WebSocketDecoder.Limits(frame: 100, message: 100), takesText: true),
        now: 0)
      var output: [UInt8] = []
      if closes { session.close(.normal, now: 0, output: &output) }
      var codes: [UInt16] = []
      for _ in 0..<2 {
        session.transportEnded { action in
          if case .end(let ending) = action { codes.append(ending.code.rawValue) }
        }
      }
      #expect(codes == [code])
    }
  }

  @Test("cuts a long reason between two scalars, and sends no code that isn't for the wire")
  func reasons() throws {
    var output: [UInt8] = []
    let reason = String(repeating: "€", count: 60)
    WebSocketEncoder.appendClose(.internalError, reason: reason, to: &output)
    let expected = DecodedEvent.close(1011, String(repeating: "€", count: 41))
    #expect(try DecodedEvent.all(in: [output], at: .client) == [expected])
    output = []
    WebSocketEncoder.appendClose(.abnormal, reason: "lost", to: &output)
    #expect(output == [0x88, 0])
  }
}
