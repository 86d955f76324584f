import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// How connections start and end.
@Suite struct ConnectionTests {
  private func error(_ result: Result<Client, ClientError>?) -> ClientError? {
    if case .failure(let error) = result { error } else { nil }
  }

  // MARK: Connecting

  @Test func theBrokerIntroducesItself() throws {
    let client = try ScriptedBroker(.test(maximumRecord: 77, maximumStreams: 5, keepalive: 0)).client()
    #expect(client.broker.software == "test")
    #expect(client.broker.identity == 7)
    #expect(client.broker.maximumRecord == 77)
    #expect(client.broker.maximumStreams == 5)
    #expect(client.broker.keepalive == nil)
    #expect(client.failure == nil)
  }

  @Test func helloSaysWhatTheOptionsSay() throws {
    let broker = try ScriptedBroker(nil)
    let result = try broker.result {
      $0.name = "billing"
      $0.keepalive = .milliseconds(1_500)
      $0.maximumFrame = 100_000
      $0.connectTimeout = .milliseconds(20)
    }
    let hello = try broker.takeReceived()[0].decode(Hello.self)
    #expect(
      hello
        == Hello(
          versions: 1...1, features: Feature.redirects, maximumFrame: 100_000, keepalive: 1_500,
          name: "billing"))
    #expect(error(result)?.code == .connectTimeout)
    #expect(error(result)?.message.contains("is it a Sluice broker?") == true)
    #expect(broker.isOver)
  }

  @Test func noListener() throws {
    let world = SimulatedWorld(seed: 1, conditions: .calm)
    let box = Box<Result<Client, ClientError>?>(nil)
    Client.connect(to: .host("missing", port: 1), network: world.network, loop: world.loops[0]) {
      box.value = $0
    }
    #expect(world.run { box.value != nil })
    #expect(error(box.value)?.code == .connectionRefused)
  }

  @Test func anAddressThatIsNone() async {
    await #expect { try await Client.connect(to: "nonsense") } throws: {
      ($0 as? ClientError)?.code == .invalidAddress
    }
  }

  @Test func aServerOfAnotherKind() throws {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "-ERR unknown command\r\n"]
    {
      let broker = try ScriptedBroker(nil)
      let box = Box<Result<Client, ClientError>?>(nil)
      Client.connect(to: broker.address, network: broker.world.network, loop: broker.clientLoop) {
        box.value = $0
      }
      broker.settle()
      broker.send(Array(answer.utf8))
      broker.settle()
      #expect(error(box.value)?.code == .notSluice, "\(answer)")
      #expect(error(box.value)?.brokerCode == ErrorCode.notSluice.rawValue)
      #expect(error(box.value)?.isRetryable == false)
    }
  }

  @Test func aServerThatHangsUp() throws {
    let broker = try ScriptedBroker(nil)
    let box = Box<Result<Client, ClientError>?>(nil)
    Client.connect(to: broker.address, network: broker.world.network, loop: broker.clientLoop) {
      box.value = $0
    }
    broker.settle()
    broker.close()
    broker.settle()
    #expect(error(box.value)?.code == .notSluice)
    // A stopping broker does the same.
    #expect(error(box.value)?.isRetryable == true)
  }

  @Test func anErrorOfTheHandshakeNamesTheRuleThatWasBroken() throws {
    for (welcome, code) in [
      (Welcome.test(maximumStreams: 0), ErrorCode.malformedFrame), (.test(features: 2), .malformedFrame),
    ] {
      let failure = try #require(error(ScriptedBroker(welcome).result()))
      #expect(failure.code == .notSluice && failure.brokerCode == code.rawValue)
    }
  }

  @Test func aBrokerOfAnotherVersion() throws {
    #expect(try error(ScriptedBroker(.test(version: 9)).result())?.code == .versionMismatch)
    let broker = try ScriptedBroker(nil)
    let box = Box<Result<Client, ClientError>?>(nil)
    Client.connect(to: broker.address, network: broker.world.network, loop: broker.clientLoop) {
      box.value = $0
    }
    broker.settle()
    broker.send(Fault(code: .versionMismatch, message: "mine is 9"), 0)
    broker.settle()
    #expect(error(box.value)?.code == .versionMismatch)
    #expect(error(box.value)?.message == "mine is 9")
  }

  @Test func aCancelledConnectIsGivenUp() throws {
    let broker = try ScriptedBroker(nil)
    let core = ClientCore(
      servers: [broker.address], options: ClientOptions(), network: broker.world.network,
      loop: broker.clientLoop)
    let box = Box<ClientError?>(nil)
    core.connect { if case .failure(let error) = $0 { box.value = error } }
    broker.settle()
    core.post(.close(.waitCancelled))
    broker.settle()
    #expect(box.value?.code == .cancelled)
    #expect(broker.isOver)
  }

  // MARK: Losing it

  /// The errors that a subscriber, a publisher and a request get when `something` happens to the connection.
  private func ends(_ something: (ScriptedBroker) -> Void) throws -> (ClientError.Code?, [String]) {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    let subject = client.subject("t")
    let (publish, show) = (Box<ClientError.Code?>(nil), Box<ClientError.Code?>(nil))
    subject.publish("a") { if case .failure(let error) = $0 { publish.value = error.code } }
    client.topicInfo("t") { if case .failure(let error) = $0 { show.value = error.code } }
    broker.settle()
    something(broker)
    broker.world.run(for: .seconds(3))
    #expect(broker.world.network.connections.allSatisfy { $0.isOver })
    return (
      client.failure?.code,
      ["\(recorder.completion as Any)", "\(publish.value as Any)", "\(show.value as Any)"]
    )
  }

  private func all(_ code: ClientError.Code) -> (ClientError.Code?, [String]) {
    (
      code,
      [
        "\(Heard.failure(code) as Heard? as Any)", "\(code as ClientError.Code? as Any)",
        "\(code as ClientError.Code? as Any)",
      ]
    )
  }

  @Test func aBrokenConnectionEndsEverything() throws {
    #expect(try ends { $0.close() } == all(.cutOff))
  }

  @Test func anEndWithinAFrameIsSaidToBeOne() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    broker.send([200, 0, 0, 0, 0x13])
    broker.close()
    broker.settle()
    #expect(client.failure?.code == .cutOff)
    #expect(client.failure?.message.contains("within a frame") == true)
  }

  @Test func theBrokersLastWordIsTheReason() throws {
    #expect(
      try ends {
        $0.send(Fault(code: .keepaliveTimeout, message: "nothing was heard"), 0)
        $0.close()
      } == all(.keepaliveTimeout))
  }

  @Test func aDepartureIsTheReason() throws {
    #expect(
      try ends {
        $0.send(GoAway(code: .shuttingDown, message: "stopping"), 0)
        $0.close()
      } == all(.shuttingDown))
  }

  @Test func afterADepartureNothingNewBegins() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let before = Recorder<TopicRecord>()
    try broker.subscribe(before, to: client.topic("t"))
    broker.send(GoAway(code: .shuttingDown, message: "stopping"), 0)
    broker.settle()
    let after = Recorder<TopicRecord>()
    client.topic("t").subscribe(after)
    #expect(broker.takeReceived().isEmpty)
    #expect(after.history == [.subscription, .failure(.shuttingDown)])
    broker.send(deliver(stream: 1, firstOffset: 0, ["a"]))
    broker.settle()
    #expect(before.values == ["a"])
  }

  @Test func aSilentBrokerIsGivenUp() throws {
    let broker = try ScriptedBroker(.test(keepalive: 1_000))
    broker.answersPings = false
    let client = try broker.client()
    broker.world.run(for: .milliseconds(700))
    #expect(broker.takeReceived().map(\.type) == [.ping])
    #expect(client.failure == nil)
    broker.world.run(for: .milliseconds(500))
    #expect(client.failure?.code == .keepaliveTimeout)
    #expect(try broker.takeOnly(Fault.self).code == .keepaliveTimeout)
    #expect(broker.isOver)
  }

  @Test("a broker that has nothing to say while it reads, and whose answer a slow line delays, is kept")
  func aReadingBrokerIsKept() throws {
    let broker = try ScriptedBroker(.test(keepalive: 1_000), bytesPerSecond: 100_000)
    let client = try broker.client()
    let subject = client.subject("t")
    broker.world.run(for: .milliseconds(50))
    _ = try broker.takeOnly(PublishOpen.self)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 1000), 1)
    broker.settle()
    for _ in 0..<50 { subject.send(Message([UInt8](repeating: 1, count: 10_000))) }
    // Five seconds' worth of bytes for this connection's rate.
    broker.world.run(for: .seconds(7))
    #expect(client.failure == nil)
    #expect(broker.takeReceived().filter { $0.type == .publish }.map(\.payloads.count).reduce(0, +) == 50)

    // A broker that doesn't read either times out.
    broker.answersPings = false
    broker.stream?.readsPaused = true
    for _ in 0..<20 { subject.send(Message([UInt8](repeating: 1, count: 10_000))) }
    broker.world.run(for: .seconds(8))
    #expect(client.failure?.code == .keepaliveTimeout)
  }

  @Test func anAnsweringBrokerIsKept() throws {
    let broker = try ScriptedBroker(.test(keepalive: 1_000))
    let client = try broker.client()
    broker.world.run(for: .seconds(60))
    #expect(client.failure == nil)
  }

  @Test func theBrokersPingIsAnswered() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    broker.send(Ping(token: 99), 0)
    #expect(try broker.takeOnly(Pong.self).token == 99)
    withExtendedLifetime(client) {}
  }

  @Test func aBrokerThatBreaksTheRulesIsToldAndLeft() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    #expect(try broker.takeOnly(Fault.self).code == .demandExceeded)
    #expect(client.failure?.code == .protocolViolation)
    #expect(recorder.history == [.subscription, .failure(.protocolViolation)])
    #expect(broker.isOver)
  }

  @Test func ofABatchThatLiesNothingIsDelivered() throws {
    for frame in [
      deliver(stream: 1, firstOffset: 0, ["a", "b"], count: 3),
      deliver(stream: 1, firstOffset: 0, ["a", "b"], count: 1),
      {
        // The last record's length exceeds the batch.
        var frame = deliver(stream: 1, firstOffset: 0, ["a", "b"])
        frame[frame.count - 5] = 9
        return frame
      }(),
    ] {
      let broker = try ScriptedBroker()
      let client = try broker.client()
      let recorder = Recorder<TopicRecord>()
      try broker.subscribe(recorder, to: client.topic("t"))
      broker.send(frame)
      #expect(try broker.takeOnly(Fault.self).code == .malformedBatch)
      #expect(recorder.history == [.subscription, .failure(.protocolViolation)])
    }
  }

  @Test func garbageIsAViolation() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    broker.send([UInt8](repeating: 0xFF, count: 100))
    broker.settle()
    #expect(client.failure?.code == .protocolViolation)
  }

  // MARK: Closing it

  @Test func closingEndsEverything() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    client.close()
    client.close()
    broker.settle()
    #expect(recorder.history == [.subscription, .failure(.closed)])
    #expect(client.failure?.code == .closed)
    #expect(broker.isOver)
    let late = Recorder<TopicRecord>()
    client.topic("t").subscribe(late)
    var isAnswered = false
    client.subject("t").publish("a") { _ in }
    client.ping { _ in }
    isAnswered = broker.world.run { late.completion != nil }
    #expect(isAnswered)
    #expect(late.history == [.subscription, .failure(.closed)])
  }

  @Test func whatWasSentBeforeClosingIsStillGivenToTheTransport() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(9)
    subject.send("a")
    client.close()
    #expect(broker.takeReceived().flatMap(\.payloads) == ["a"])
  }

  @Test func releasingTheClientEndsEverything() throws {
    let broker = try ScriptedBroker()
    var client: Client? = try broker.client()
    let recorder = Recorder<TopicRecord>()
    let topic = client!.topic("t")
    try broker.subscribe(recorder, to: topic)
    client = nil
    broker.settle()
    #expect(recorder.history == [.subscription, .failure(.closed)])
    #expect(broker.isOver)
    let late = Recorder<TopicRecord>()
    topic.subscribe(late)
    broker.settle()
    #expect(late.history == [.subscription, .failure(.closed)])
  }
}
