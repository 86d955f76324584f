import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker

/// Which streams of a client may be redirected to another node.
struct SessionRedirectTests {
  private func probe(offered: UInt64, named: UInt64) -> SessionProbe {
    var probe = SessionProbe()
    probe.rules.handshake.offer.features = offered
    let hello = Hello(features: named, maximumFrame: 1 << 20, keepalive: 0, name: "client")
    #expect(probe.receive(hello, stream: 0) == .welcome(client: "client"))
    return probe
  }

  @Test func streamsOfOneTopicMayBeRedirected() {
    var probe = probe(offered: Feature.redirects, named: Feature.redirects)
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    _ = probe.receive(JoinGroup(topic: "t", group: "g", grantedThrough: 1), stream: 2)
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 3)
    _ = probe.receive(TopicShow(topic: "t"), stream: 4)
    #expect((1...5).map { probe.session.mayRedirect($0) } == [true, true, true, false, false])
    probe.session.ended(1)
    #expect(probe.session.mayRedirect(1) == false)
  }

  @Test(arguments: [(0, Feature.redirects), (Feature.redirects, 0), (0, 0)] as [(UInt64, UInt64)])
  func bothSidesAgreeToRedirects(offered: UInt64, named: UInt64) {
    var probe = probe(offered: offered, named: named)
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    #expect(probe.session.mayRedirect(1) == false)
  }

  @Test func aStreamThatAsksToBeRelayedIsNot() {
    var probe = probe(offered: Feature.redirects, named: Feature.redirects)
    let frame = Subscribe(topic: "t", grantedThrough: 1)
    #expect(
      probe.receive(raw: frame.encoded(flags: StreamFlag.relay, stream: 1))
        == .subscribe(stream: 1, topic: "t"))
    #expect(probe.session.mayRedirect(1) == false)
    // The next use of the number decides again.
    _ = probe.receive(Cancel(), stream: 1)
    _ = probe.receive(frame, stream: 1)
    #expect(probe.session.mayRedirect(1) == true)
  }
}
