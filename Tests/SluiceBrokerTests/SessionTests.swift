import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct SessionTests {
  // MARK: The handshake

  @Test func helloOpensTheSession() {
    var probe = SessionProbe()
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "client")
    #expect(probe.receive(hello, stream: 0) == .welcome(client: "client"))
    #expect(probe.session.phase == .open)
    #expect(probe.receive(hello, stream: 0) == .connectionError(.unexpectedFrame))
  }

  @Test func nothingElseIsTakenBeforeHello() {
    var probe = SessionProbe()
    #expect(probe.receive(Ping(token: 1), stream: 0) == .connectionError(.notSluice))
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 1) == .connectionError(.notSluice))
    #expect(probe.receive(Cancel(), stream: 1) == .connectionError(.notSluice))
    #expect(probe.session.phase == .handshake)
  }

  @Test func aHelloThatCantBeAgreedWithLeavesTheSessionClosed() {
    var probe = SessionProbe()
    let other = Hello(versions: 7...9, maximumFrame: 1 << 20, keepalive: 0, name: "")
    #expect(probe.receive(other, stream: 0) == .connectionError(.versionMismatch))
    let small = Hello(maximumFrame: 1000, keepalive: 0, name: "")
    #expect(probe.receive(small, stream: 0) == .connectionError(.malformedFrame))
    #expect(probe.session.phase == .handshake)
  }

  @Test func drainingBeforeTheHandshakeChangesNothing() {
    var probe = SessionProbe()
    probe.session.drain()
    #expect(probe.session.phase == .handshake)
  }

  // MARK: The connection

  @Test func aPingIsAnsweredWithItsToken() {
    var probe = SessionProbe.open()
    #expect(probe.receive(Ping(token: 77), stream: 0) == .pong(token: 77))
    #expect(probe.receive(Pong(token: 77), stream: 0) == .nothing)
  }

  @Test func aClientMaySayWhyItCloses() {
    var probe = SessionProbe.open()
    #expect(probe.receive(Fault(code: .malformedFrame, message: "no"), stream: 0) == .nothing)
    #expect(
      probe.receive(Fault(code: .malformedFrame, message: "no"), stream: 1)
        == .connectionError(.unexpectedFrame))
  }

  @Test func aFrameThatIsCutShortEndsTheConnection() {
    for frame in [
      Subscribe(topic: "t", grantedThrough: 1).encoded(stream: 1),
      Demand(grantedThrough: 1).encoded(stream: 1),
      Ping(token: 1).encoded(stream: 0), TopicShow(topic: "t").encoded(stream: 1),
    ] {
      var probe = SessionProbe.open()
      #expect(probe.receive(raw: frame.dropLast()) == .connectionError(.malformedFrame))
    }
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    let front = SessionProbe.publishFrame(BatchBuilder(), from: 0, stream: 1)
    #expect(probe.receive(raw: front.dropLast()) == .connectionError(.malformedFrame))
  }

  @Test(arguments: [0, 9, UInt32.max])
  func streamsAreNumberedAsWelcomeAnnounced(stream: UInt32) {
    var probe = SessionProbe.open()
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: stream)
        == .connectionError(.invalidStream))
    #expect(
      probe.receive(PublishOpen(topic: "t", acknowledgement: .none), stream: stream)
        == .connectionError(.invalidStream))
    #expect(probe.receive(TopicShow(topic: "t"), stream: stream) == .connectionError(.invalidStream))
    #expect(probe.receive(Cancel(), stream: stream) == .connectionError(.invalidStream))
    #expect(probe.receive(Demand(grantedThrough: 1), stream: stream) == .connectionError(.invalidStream))
  }

  @Test func theHighestStreamCanBeOpenedFirst() {
    var probe = SessionProbe.open()
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 8) == .subscribe(stream: 8, topic: "t"))
    #expect(probe.receive(Cancel(), stream: 8) == .cancel(stream: 8))
    #expect(
      probe.receive(Subscribe(topic: "u", grantedThrough: 1), stream: 1) == .subscribe(stream: 1, topic: "u"))
  }

  // MARK: Requests

  @Test func requestsAreHandedOnWithWhatTheyAskFor() {
    var probe = SessionProbe.open()
    #expect(
      probe.receive(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1)
        == .createTopic(stream: 1, topic: "t"))
    #expect(
      probe.receive(TopicList(after: "a", limit: 5), stream: 2)
        == .listTopics(stream: 2, after: "a", limit: 5))
    #expect(probe.receive(TopicDelete(topic: "t"), stream: 3) == .deleteTopic(stream: 3, topic: "t"))
    #expect(probe.session.openStreams == [])
  }

  @Test func administrationIsHandedOnWithWhatItAsksFor() {
    var probe = SessionProbe.open()
    let set = TopicSet(topic: "t", settings: TopicSettings(replayRecords: 1))
    #expect(probe.receive(set, stream: 1) == .setTopic(stream: 1, set))
    let trim = TopicTrim(topic: "t", .from(9))
    #expect(probe.receive(trim, stream: 2) == .trimTopic(stream: 2, trim))
    #expect(
      probe.receive(ConnectionList(after: 3, limit: 4), stream: 3)
        == .listConnections(stream: 3, after: 3, limit: 4))
    #expect(
      probe.receive(ConnectionClose(connection: 5), stream: 4) == .closeConnection(stream: 4, connection: 5))
    #expect(probe.receive(BrokerShow(), stream: 5) == .showBroker(stream: 5))
    var unknown = trim.encoded(stream: 6)
    unknown[FrameHeader.size + 3] = 2
    #expect(probe.receive(raw: unknown) == .fault(stream: 6, .unsupported))
    #expect(
      probe.receive(TopicSet(topic: "a b", settings: TopicSettings()), stream: 7)
        == .fault(stream: 7, .invalidTopic))
  }

  @Test func requestsAboutTheClusterAreHandedOn() {
    var probe = SessionProbe.open()
    let show = ClusterShow(after: "a", nodes: 1, firstShard: 2, shards: 3)
    #expect(probe.receive(show, stream: 1) == .showCluster(stream: 1, show))
    let drain = ClusterDrain(node: "n1", wanted: true)
    #expect(probe.receive(drain, stream: 2) == .drainNode(stream: 2, drain))
    let move = ClusterMove(shard: 3, node: "")
    #expect(probe.receive(move, stream: 3) == .moveShard(stream: 3, move))
    #expect(
      probe.receive(ClusterDrain(node: "n 1", wanted: true), stream: 4) == .fault(stream: 4, .invalidTopic))
  }

  @Test func aSettingThatIsntKnownIsTheRequestsError() {
    var probe = SessionProbe.open()
    var frame = TopicCreate(topic: "t", settings: TopicSettings(replayRecords: 1)).encoded(stream: 1)
    frame[frame.count - 9] = 99
    #expect(probe.receive(raw: frame) == .fault(stream: 1, .invalidSetting))
    #expect(probe.receive(TopicShow(topic: "t"), stream: 1) == .showTopic(stream: 1, topic: "t"))
    #expect(probe.receive(raw: frame) == .connectionError(.invalidStream))
  }

  @Test func aChoiceThatIsntKnownIsTheStreamsError() {
    var probe = SessionProbe.open()
    var subscribe = Subscribe(topic: "t", grantedThrough: 1).encoded(stream: 1)
    // Start position 9, after the header and the name.
    subscribe[FrameHeader.size + 3] = 9
    #expect(probe.receive(raw: subscribe) == .fault(stream: 1, .unsupported))
    var publish = PublishOpen(topic: "t", acknowledgement: .received).encoded(stream: 1)
    publish[FrameHeader.size + 3] = 9
    #expect(probe.receive(raw: publish) == .fault(stream: 1, .unsupported))
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 1), stream: 1) == .subscribe(stream: 1, topic: "t"))
  }

  @Test func anAnswerFreesTheStream() {
    var probe = SessionProbe.open()
    _ = probe.receive(TopicShow(topic: "t"), stream: 1)
    let request = probe.session.request(on: 1)
    #expect(request != nil)
    #expect(probe.answers(request) == true)
    #expect(probe.answers(request) == false)
    #expect(probe.receive(TopicShow(topic: "u"), stream: 1) == .showTopic(stream: 1, topic: "u"))
  }

  @Test func anAnswerThatComesAfterCancelIsForNobody() {
    var probe = SessionProbe.open()
    _ = probe.receive(TopicShow(topic: "t"), stream: 1)
    let request = probe.session.request(on: 1)
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
    #expect(probe.answers(request) == false)

    // Nor for a later request on the same stream.
    _ = probe.receive(TopicShow(topic: "u"), stream: 1)
    #expect(probe.answers(request) == false)
    #expect(probe.answers(probe.session.request(on: 1)) == true)
  }

  // MARK: Demand

  @Test func onlyAGrantThatIsLargerChangesAnything() {
    var probe = SessionProbe.open()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
    #expect(probe.receive(Demand(grantedThrough: 5), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 3), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .demand(stream: 1, grantedThrough: 9))
    #expect(probe.receive(Demand(grantedThrough: 7), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .nothing)
    #expect(
      probe.receive(Demand(grantedThrough: .max), stream: 1) == .demand(stream: 1, grantedThrough: .max))
    #expect(probe.receive(Demand(grantedThrough: .max - 1), stream: 1) == .nothing)
  }

  @Test func aSubscriptionMayBeginWithoutDemand() {
    var probe = SessionProbe.open()
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 1) == .subscribe(stream: 1, topic: "t"))
    #expect(probe.receive(Demand(grantedThrough: 1), stream: 1) == .demand(stream: 1, grantedThrough: 1))
  }

  @Test func aGrantOfNothingEndsTheStreamAlone() {
    var probe = SessionProbe.open()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 2)
    #expect(probe.receive(Demand(grantedThrough: 0), stream: 1) == .fault(stream: 1, .invalidDemand))
    // Frames sent before the client received the error are dropped.
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 2) == .demand(stream: 2, grantedThrough: 9))
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 1) == .subscribe(stream: 1, topic: "t"))
  }

  @Test func aStreamThatIsUsedAgainBeginsWithItsOwnGrant() {
    var probe = SessionProbe.open()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 50), stream: 1)
    _ = probe.receive(Cancel(), stream: 1)
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 2), stream: 1)
    #expect(probe.receive(Demand(grantedThrough: 3), stream: 1) == .demand(stream: 1, grantedThrough: 3))
  }

  // MARK: Crossings

  @Test func aCompletionAndACancelThatCrossAreSettledByTheConfirmation() {
    var probe = SessionProbe.open()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
    probe.session.ended(1)
    #expect(probe.receive(Demand(grantedThrough: 6), stream: 1) == .nothing)
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1) == .subscribe(stream: 1, topic: "t"))
  }

  @Test func twoProducersThatCompleteTheSameTopicCross() {
    var probe = SessionProbe.open()
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    // Another producer completed the topic first.
    probe.session.ended(1)
    #expect(probe.publish([1], from: 0, stream: 1) == .nothing)
    #expect(probe.receive(Complete(.finished), stream: 1) == .nothing)
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
  }

  @Test func whatFollowsAStreamThatWasRefusedWhileDrainingIsNoError() {
    var probe = SessionProbe.open()
    probe.session.drain()
    #expect(
      probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 3) == .fault(stream: 3, .shuttingDown))
    // The client sent these before it received the end.
    #expect(probe.receive(Demand(grantedThrough: 1), stream: 3) == .nothing)
    #expect(probe.receive(Cancel(), stream: 3) == .confirmCancel(stream: 3))
  }

  @Test func streamsThatAreOpenAreKnown() {
    var probe = SessionProbe.open()
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 5)
    _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .none), stream: 2)
    _ = probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 3)
    _ = probe.receive(Cancel(), stream: 3)
    #expect(probe.session.openStreams == [2, 5])
    probe.session.ended(5)
    #expect(probe.session.openStreams == [2])
  }
}
