import SluiceWire
import TestSupport
import Testing

/// Thousands of connections that are reset at any point.
@Suite(.onItsOwnThread) struct ResetStormTests {
  @Test func resetsLeaveNothingBehind() throws {
    let scene = try AttackScene("resets")
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "storm").encoded(stream: 0)
    var session = hello
    Subscribe(topic: "storm", grantedThrough: .max).encode(stream: 1, into: &session)
    PublishOpen(topic: "storm", acknowledgement: .received).encode(stream: 2, into: &session)
    SubscribePattern(pattern: "storm.*", grantedThrough: 10).encode(stream: 3, into: &session)
    TopicCreate(topic: "storm.x", settings: TopicSettings()).encode(stream: 4, into: &session)
    try scene.run(growingBy: 64 << 20) {
      for number in 0..<2500 {
        let socket = try RawSocket(scene.broker.address)
        let count = number % 5 == 0 ? session.count : number % session.count
        _ = try session.prefix(count).withUnsafeBytes { try socket.write($0) }
        // Some have received a reply by then.
        if number % 7 == 0 { _ = socket.wait(until: Deadline(in: 0.005)) }
        socket.reset()
      }
    }
    #expect(try scene.broker.metric("subscriptions") == 1)
    #expect(try scene.broker.metric("publications") == 1)
  }
}
