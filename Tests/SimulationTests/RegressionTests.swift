import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Defects that seeds have found, each reproduced without randomness. Each test failed when it was written.
@Suite struct RegressionTests {
  /// A lossless topic that has ended retains the records that its subscribers have yet to get, whatever the limits.
  @Test func aLosslessTopicThatHasEndedKeepsWhatItsSubscribersAreOwed() throws {
    let small = try SmallWorld()
    let client = small.connect()
    var settings = TopicSettings(replayRecords: 5, replayAge: 10)
    settings.flow = .lossless
    settings.bufferRecords = 1_000
    _ = client.ask(TopicCreate(topic: "t", settings: settings), stream: 9, in: small)
    client.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 2)
    small.settle()
    // More than the grace for subscribers in progress.
    for number in 0..<40 as Range<UInt64> {
      client.publish([[UInt8](repeating: 1, count: 60_000)], from: number, stream: 2)
      small.settle(.milliseconds(20))
    }
    client.send(Complete(.finished), stream: 2)
    small.settle(.seconds(10))
    client.send(Demand(grantedThrough: 100), stream: 1)
    small.settle(.seconds(1))
    #expect(!client.frames(on: 1).map(\.header.type).contains(.lag))
    let delivered = try client.frames(on: 1).filter { $0.header.type == .deliver }
      .map { frame in try frame.body.withUnsafeBytes { try Int(DeliverHeader.decode($0).0.count) } }
    #expect(delivered.reduce(0, +) == 40)
    #expect(client.frames(on: 1).last?.header.type == .complete)
  }

  /// A subscriber that still reads the former epoch gets no request of the present epoch.
  @Test func aRequestNeedsASubscriberOfTheTopicsPresentLife() throws {
    let small = try SmallWorld()
    let client = small.connect()
    var settings = TopicSettings()
    settings.scope = .whileConnected
    _ = client.ask(TopicCreate(topic: "t", settings: settings), stream: 9, in: small)
    client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 1)
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 2)
    client.publish([[1]], from: 0, stream: 2)
    client.send(Complete(.finished), stream: 2)
    small.settle()
    client.send(PublishOpen(topic: "t", acknowledgement: .none, role: .requester), stream: 3)
    small.settle()
    client.publish([[2]], from: 0, stream: 3)
    small.settle()
    #expect(try client.fault(on: 3)?.code == .noResponders)
    client.send(Subscribe(topic: "t", grantedThrough: 9), stream: 4)
    client.send(PublishOpen(topic: "t", acknowledgement: .none, role: .requester), stream: 5)
    small.settle()
    client.publish([[3]], from: 0, stream: 5)
    small.settle()
    #expect(try client.fault(on: 5) == nil)
    #expect(client.frames(on: 4).last?.header.type == .deliver)
  }

  @Test func aStreamRefusedByAStoppingBrokerEndsOnce() throws {
    let small = try SmallWorld()
    let client = small.connect()
    // This subscription keeps the connection open during the drain: a record is available, but it has no demand.
    client.send(Subscribe(topic: "a", grantedThrough: 0), stream: 1)
    client.send(PublishOpen(topic: "a", acknowledgement: .none), stream: 2)
    client.publish([[1]], from: 0, stream: 2)
    small.settle(.milliseconds(20))
    small.broker.shutdown()
    small.settle(.milliseconds(1))
    client.send(Subscribe(topic: "a", grantedThrough: 0), stream: 9)
    client.send(Demand(grantedThrough: 5), stream: 9)
    small.settle(.milliseconds(20))
    #expect(client.frames(on: 9).map(\.header.type) == [.error])
  }

  @Test func questionsWhoseAnswersNobodyReadsDoNotFillTheMemory() throws {
    let small = try SmallWorld { $0.limits.answers = 20_000 }
    let client = small.connect()
    for number in 0..<40 {
      let name = "topic-\(number)-" + String(repeating: "x", count: 200)
      client.send(TopicCreate(topic: name, settings: TopicSettings()), stream: 1)
      small.settle(.milliseconds(5))
    }
    client.forget()
    client.isPaused = true
    let questions = 300
    // In one write, so that the broker reads them all at once.
    client.send((0..<questions).flatMap { _ in TopicList(after: "", limit: 40).encoded(stream: 1) })
    var most = 0
    for _ in 0..<200 {
      small.settle(.milliseconds(1))
      let waiting = small.broker.contexts[0].connections.map(\.waitingBytes).map { $0.answers + $0.pending }
      most = max(most, waiting.max() ?? 0)
    }
    #expect(most > 10_000)
    #expect(most < 20_000 + 65_536)
    client.isPaused = false
    let isAnswered = small.world.run(limit: .seconds(20)) { client.frames.count == questions }
    #expect(isAnswered)
    #expect(Set(client.types) == [.topics])
  }

  @Test func aHelloThatTheTransportTakesInPiecesArrives() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 10
    let small = try SmallWorld(conditions: conditions)
    let outcome = Shared<Result<Client, ClientError>?>(nil)
    var options = ClientOptions()
    options.reconnect = nil
    Client.connect(to: small.address, options: options, network: small.world.network, loop: small.loop) {
      outcome.set($0)
    }
    small.settle(.seconds(1))
    #expect(throws: Never.self) { try outcome.value?.get() }
    #expect(outcome.value != nil)
  }

  @Test func aStrangerIsToldThatThisIsNotItsProtocol() throws {
    let small = try SmallWorld()
    let client = small.connect(raw: true)
    client.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
    small.settle()
    #expect(client.types == [.error])
    #expect(try client.frames.first?.decoded(Fault.self).code == .notSluice)
    #expect(client.hasEnded)
  }
}
