import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// A client whose broker redirects it to other nodes of a cluster.
@Suite struct DirectRoutingTests {
  private let home: ScriptedBroker
  private let node: ScriptedBroker
  private let redirect = Redirect(node: "b", address: "node:7420")

  init() throws {
    home = try ScriptedBroker(.test(features: Feature.redirects))
    node = try ScriptedBroker(
      .test(features: Feature.redirects), at: .host("node", port: 7420), beside: home)
  }

  private func client(_ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client {
    try home.client {
      $0.reconnect = ReconnectPolicy()
      $0.seed = 1
      configure(&$0)
    }
  }

  private func run(_ time: Duration) { home.world.run(for: time) }

  /// The next frame that arrives at a broker, with its stream and flags.
  private func next<F: Frame>(
    _ type: F.Type = F.self, at broker: ScriptedBroker
  ) throws -> (frame: F, stream: UInt32, flags: UInt8) {
    #expect(home.world.run(limit: .seconds(120)) { !broker.received.isEmpty })
    let frames = broker.takeReceived()
    try #require(frames.count == 1, "\(frames)")
    return (try frames[0].decode(F.self), frames[0].stream, frames[0].flags)
  }

  /// Opens a subscription at the node, on stream 1.
  private func subscribe<S: Subscriber>(_ subscriber: S, to topic: RemoteTopic<TopicRecord>) throws
  where S.Input == TopicRecord, S.Failure == ClientError {
    topic.subscribe(subscriber)
    let first = try next(Subscribe.self, at: home)
    home.send(redirect, first.stream)
    let second = try next(Subscribe.self, at: node)
    #expect(second.frame == first.frame)
    node.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), second.stream)
    node.settle()
  }

  private func published(_ broker: ScriptedBroker) throws -> [String] {
    try broker.takeReceived().filter { $0.type == .publish }.map { frame in
      let header = try frame.body.withUnsafeBytes { try PublishHeader.decode($0).header }
      return "\(header.firstSequence): \(frame.payloads.joined(separator: " "))"
    }
  }

  // MARK: There

  @Test func streamsAreOpenedAtTheNodeOnOneConnection() throws {
    let client = try client { $0.credentials = .none }
    let recorder = Recorder<TopicRecord>(initial: .max(2))
    try subscribe(recorder, to: client.topic("a"))
    #expect(home.hello?.features == Feature.redirects && node.hello?.features == Feature.redirects)
    node.send(deliver(stream: 1, firstOffset: 0, ["x", "y"]))
    node.settle()
    recorder.subscription?.request(.max(3))
    #expect(try next(Demand.self, at: node).frame.grantedThrough == 5)

    let subject = client.subject("b")
    let opening = try next(PublishOpen.self, at: home)
    home.send(redirect, opening.stream)
    #expect(try next(PublishOpen.self, at: node).frame == opening.frame)
    node.send(PublishOpened(epoch: 1, grantedThrough: 10), 2)
    node.settle()
    subject.send(Message("z"))
    #expect(try published(node) == ["0: z"])
    node.send(Ack(through: 1, lastOffset: 0), 2)

    let member = Recorder<Delivery>()
    client.group("g", of: "c").subscribe(member)
    home.send(redirect, try next(JoinGroup.self, at: home).stream)
    #expect(try next(JoinGroup.self, at: node).stream == 3)

    recorder.subscription?.cancel()
    #expect(try next(Cancel.self, at: node).stream == 1)
    #expect(home.takeReceived() == [])
    #expect(recorder.values == ["x", "y"] && subject.acknowledgedCount == 1)
    #expect(home.accepted == 1 && node.accepted == 1)
  }

  @Test func requestsAndPatternsStayWithTheBroker() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try subscribe(recorder, to: client.topic("a"))
    client.topicInfo("a") { _ in }
    client.topics(matching: "a.*").subscribe(Recorder<TopicRecord>())
    #expect(home.takeReceived().map(\.type) == [.topicShow, .subscribePattern])
    #expect(node.takeReceived() == [])
  }

  @Test func aClientThatIsToBeRelayedDoesNotNameTheFeature() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client { $0.routing = .relay }
    #expect(broker.hello?.features == 0)
    client.topic("a").subscribe(Recorder<TopicRecord>())
    let _: Subscribe = try broker.takeOnly()
    broker.send(redirect, 1)
    broker.settle()
    #expect(client.failure?.code == .protocolViolation)
  }

  @Test func commitsGoToTheNodeAlsoBehindTheEnd() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try subscribe(recorder, to: client.topic("a", cursor: "c"))
    node.send(deliver(stream: 1, firstOffset: 0, ["x"]))
    node.send(Complete(.finished), 1)
    #expect(try next(Commit.self, at: node).frame.nextOffset == 1)
    #expect(recorder.history == [.subscription, .value("x"), .finished])
  }

  // MARK: Not there

  @Test func aNodeThatRefusesConnectionsIsRelayedForAWhile() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    client.topic("a").subscribe(recorder)
    let first = try next(Subscribe.self, at: home)
    home.send(Redirect(node: "c", address: "gone:7420"), first.stream)
    let relayed = try next(Subscribe.self, at: home)
    #expect(relayed.frame == first.frame && first.flags == 0 && relayed.flags == StreamFlag.relay)
    home.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), relayed.stream)
    // There is no other attempt for a minute.
    let connections = home.world.network.connections.count
    client.subject("b").send(Message("x"))
    let opening = try next(PublishOpen.self, at: home)
    home.send(Redirect(node: "c", address: "gone:7420"), opening.stream)
    #expect(try next(PublishOpen.self, at: home).flags == StreamFlag.relay)
    #expect(home.world.network.connections.count == connections)
    run(.seconds(61))
    let later = try ScriptedBroker(at: .host("gone", port: 7420), beside: home)
    _ = home.takeReceived()
    home.send(Fault(code: .topicMoved, message: ""), 1)
    let again = try next(Subscribe.self, at: home)
    #expect(again.flags == 0)
    home.send(Redirect(node: "c", address: "gone:7420"), again.stream)
    #expect(try next(Subscribe.self, at: later).frame == again.frame)
  }

  @Test func aNodeThatDoesNotAnswerIsRelayedSoon() throws {
    let silent = try ScriptedBroker(nil, at: .host("silent", port: 7420), beside: home)
    let client = try client()
    client.topic("a").subscribe(Recorder<TopicRecord>())
    let begin = home.world.now
    var asked = try next(Subscribe.self, at: home)
    var times = 0
    while asked.flags != StreamFlag.relay, times < 20 {
      times += 1
      home.send(Redirect(node: "c", address: "silent:7420"), asked.stream)
      asked = try next(Subscribe.self, at: home)
    }
    #expect(asked.flags == StreamFlag.relay)
    #expect(home.world.now - begin < .milliseconds(2_100))
    #expect(times < 10)
    #expect(silent.accepted == 1 && client.failure == nil)
  }

  @Test func theBrokerIsAskedAgainWhileANodeDoesNotAnswer() throws {
    let silent = try ScriptedBroker(nil, at: .host("silent", port: 7420), beside: home)
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    client.topic("a").subscribe(recorder)
    let begin = home.world.now
    let first = try next(Subscribe.self, at: home)
    home.send(Redirect(node: "c", address: "silent:7420"), first.stream)
    // The topic moves to another node meanwhile.
    let again = try next(Subscribe.self, at: home)
    #expect(again.frame == first.frame && again.flags == 0)
    #expect(home.world.now - begin < .milliseconds(300))
    home.send(redirect, again.stream)
    #expect(try next(Subscribe.self, at: node).frame == first.frame)
    // The state of that connection no longer affects the subscription.
    run(.seconds(5))
    #expect(silent.accepted == 1 && node.takeReceived() == [] && home.takeReceived() == [])
    #expect(recorder.history == [.subscription] && client.failure == nil)
  }

  @Test func aSlowNodeGetsItsStreamsOnceItAnswers() throws {
    let slow = try ScriptedBroker(nil, at: .host("slow", port: 7420), beside: home)
    let client = try client()
    client.topic("a").subscribe(Recorder<TopicRecord>())
    let redirect = Redirect(node: "c", address: "slow:7420")
    home.send(redirect, try next(Subscribe.self, at: home).stream)
    home.send(redirect, try next(Subscribe.self, at: home).stream)
    run(.milliseconds(100))
    _ = slow.takeReceived()
    slow.send(Welcome.test(features: Feature.redirects).encoded(stream: 0))
    #expect(try next(Subscribe.self, at: slow).frame.topic == "a")
    run(.seconds(3))
    #expect(home.takeReceived() == [] && slow.takeReceived() == [] && slow.accepted == 1)
  }

  @Test(arguments: ["", "nowhere", "unix:/tmp/x", "tls://node:7420", "broker:7420"])
  func anAddressThatIsNotOneToConnectToIsRelayed(address: String) throws {
    let client = try client()
    client.topic("a").subscribe(Recorder<TopicRecord>())
    home.send(Redirect(node: "c", address: address), try next(Subscribe.self, at: home).stream)
    #expect(try next(Subscribe.self, at: home).flags == StreamFlag.relay)
    #expect(home.world.network.connections.count == 1 && client.failure == nil)
  }

  @Test func aStreamThatIsSentRoundIsRelayed() throws {
    let client = try client()
    client.topic("a").subscribe(Recorder<TopicRecord>())
    for _ in 0..<3 {
      let asked = try next(Subscribe.self, at: home)
      #expect(asked.flags == 0)
      home.send(redirect, asked.stream)
      node.send(Redirect(node: "a", address: "broker:7420"), try next(Subscribe.self, at: node).stream)
    }
    home.send(redirect, try next(Subscribe.self, at: home).stream)
    #expect(try next(Subscribe.self, at: home).flags == StreamFlag.relay)
    #expect(node.takeReceived() == [])
  }

  @Test func whatIsCancelledMeanwhileIsNotOpened() throws {
    let silent = try ScriptedBroker(nil, at: .host("silent", port: 7420), beside: home)
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    client.topic("a").subscribe(recorder)
    home.send(Redirect(node: "c", address: "silent:7420"), try next(Subscribe.self, at: home).stream)
    run(.milliseconds(100))
    recorder.subscription?.cancel()
    _ = silent.takeReceived()
    silent.send(Welcome.test().encoded(stream: 0))
    run(.seconds(3))
    #expect(silent.takeReceived() == [] && home.takeReceived() == [])
    #expect(recorder.history == [.subscription])
  }

  // MARK: No longer there

  @Test func aStreamWhoseTopicMovesAsksTheBrokerAgain() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(5))
    try subscribe(recorder, to: client.topic("a"))
    node.send(deliver(stream: 1, firstOffset: 0, ["x"]))
    node.send(Fault(code: .topicMoved, message: ""), 1)
    let again = try next(Subscribe.self, at: home)
    #expect(
      again.frame == Subscribe(topic: "a", start: .offset(1), lag: nil, epoch: 1, grantedThrough: 4))
    // The broker itself serves the topic now.
    home.send(Subscribed(epoch: 1, nextOffset: 1, liveOffset: 1), again.stream)
    home.send(deliver(stream: again.stream, firstOffset: 1, ["y"]))
    home.settle()
    recorder.subscription?.request(.max(1))
    #expect(try next(Demand.self, at: home).frame.grantedThrough == 5)
    #expect(recorder.values == ["x", "y"] && node.takeReceived() == [])
  }

  @Test func streamsOfABrokenConnectionAskTheBrokerAgain() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(3))
    try subscribe(recorder, to: client.topic("a"))
    let subject = client.subject("b")
    let opening = try next(PublishOpen.self, at: home)
    home.send(redirect, opening.stream)
    let opened = try next(PublishOpen.self, at: node)
    node.send(PublishOpened(epoch: 1, grantedThrough: 10), opened.stream)
    node.settle()
    for text in ["x", "y"] { subject.send(Message(text)) }
    #expect(try published(node) == ["0: x y"])
    node.send(deliver(stream: 1, firstOffset: 0, ["v"]))
    node.settle()
    node.close()
    #expect(home.world.run(limit: .seconds(10)) { home.received.count == 2 })
    let frames = home.takeReceived()
    let subscribe: Subscribe = try #require(frames.first { $0.type == .subscribe }).decode()
    #expect(subscribe.grantedThrough == 2 && subscribe.start == .offset(1))
    let publish: PublishOpen = try #require(frames.first { $0.type == .publishOpen }).decode()
    #expect(publish.producer == opening.frame.producer && publish.firstSequence == 0)
    // The node has the first record.
    for frame in frames { home.send(redirect, frame.stream) }
    #expect(home.world.run(limit: .seconds(10)) { node.received.count == 2 })
    for frame in node.takeReceived() {
      if frame.type == .publishOpen {
        node.send(PublishOpened(epoch: 1, grantedThrough: 10, nextSequence: 1), frame.stream)
      }
    }
    #expect(try published(node) == ["1: y"])
    #expect(node.accepted == 2 && home.accepted == 1 && client.failure == nil)
  }

  @Test func aStreamThatMovesOftenIsStillServedByItsNode() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try subscribe(recorder, to: client.topic("a"))
    for _ in 0..<8 {
      node.send(Fault(code: .topicMoved, message: ""), 1)
      let asked = try next(Subscribe.self, at: home)
      #expect(asked.flags == 0)
      home.send(redirect, asked.stream)
      let opened = try next(Subscribe.self, at: node)
      node.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), opened.stream)
      node.settle()
    }
    #expect(recorder.history == [.subscription])
  }

  /// If a node has just failed, its topics are about to move to another one, and the streams are opened there instead of being relayed.
  @Test func streamsOfANodeThatFailsFindItsSuccessor() throws {
    let successor = try ScriptedBroker(at: .host("successor", port: 7420), beside: home)
    let client = try client()
    try subscribe(Recorder<TopicRecord>(), to: client.topic("a"))
    home.world.network.crash(node.loop)
    let begin = home.world.now
    var asked = 0
    while home.world.now - begin < .seconds(3) {
      let again = try next(Subscribe.self, at: home)
      #expect(again.flags == 0)
      home.send(redirect, again.stream)
      asked += 1
    }
    #expect(asked > 5 && asked < 40)
    home.send(Redirect(node: "c", address: "successor:7420"), try next(Subscribe.self, at: home).stream)
    _ = try next(Subscribe.self, at: successor)
  }

  @Test func aDepartingNodeGetsNoMoreStreams() throws {
    let client = try client()
    try subscribe(Recorder<TopicRecord>(), to: client.topic("a"))
    node.send(GoAway(code: .shuttingDown, message: "bye").encoded(stream: 0))
    node.settle()
    client.topic("b").subscribe(Recorder<TopicRecord>())
    home.send(redirect, try next(Subscribe.self, at: home).stream)
    // The client asks the broker again.
    #expect(try next(Subscribe.self, at: home).frame.topic == "b")
    #expect(node.takeReceived() == [])
  }

  @Test func aLostBrokerDoesNotDisturbStreamsAtNodes() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(1)) { _, _ in .max(1) }
    try subscribe(recorder, to: client.topic("a"))
    home.close()
    home.world.run(for: .milliseconds(20))
    node.send(deliver(stream: 1, firstOffset: 0, ["x"]))
    #expect(try next(Demand.self, at: node).frame.grantedThrough == 2)
    #expect(recorder.values == ["x"])
    run(.seconds(2))
    #expect(home.accepted == 2 && node.accepted == 1)
    #expect(home.takeReceived() == [])
    withExtendedLifetime(client) {}
  }

  // MARK: The connection

  @Test func aConnectionWithoutStreamsIsClosedAfterAWhile() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try subscribe(recorder, to: client.topic("a"))
    run(.seconds(100))
    #expect(!node.isOver)
    recorder.subscription?.cancel()
    node.send(Cancelled(), try next(Cancel.self, at: node).stream)
    run(.seconds(10))
    #expect(!node.isOver)
    run(.seconds(35))
    #expect(node.isOver)
    try subscribe(Recorder<TopicRecord>(), to: client.topic("b"))
    #expect(node.accepted == 2)
  }

  @Test func closingTheClientClosesAllConnections() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try subscribe(recorder, to: client.topic("a", cursor: SubscriptionPlan.Cursor("c", commit: .manual)))
    node.send(deliver(stream: 1, firstOffset: 0, ["x"]))
    node.settle()
    client.close()
    run(.seconds(1))
    #expect(home.isOver && node.isOver)
    #expect(recorder.completion == .failure(.closed))
    #expect(!home.world.run(limit: .seconds(100)) { !node.received.isEmpty || !home.received.isEmpty })
  }

  @Test func aNodeThatBreaksTheProtocolIsRelayed() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try subscribe(recorder, to: client.topic("a"))
    node.send(deliver(stream: 1, firstOffset: 0, ["x", "y"]))
    let again = try next(Subscribe.self, at: home)
    home.send(redirect, again.stream)
    #expect(try next(Subscribe.self, at: home).flags == StreamFlag.relay)
    #expect(client.failure == nil)
  }
}
