import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// `share()` across processes: a source of a topic and its subscribers in other processes, with a real broker.
@Suite struct SharingTests {
  private func settings(_ connect: TopicSettings.Connect) -> TopicSettings {
    var settings = TopicSettings()
    settings.connect = connect
    return settings
  }

  /// A broker with a topic, and the clients of the source and the subscribers.
  private func stage(_ connect: TopicSettings.Connect) throws -> (Stage, source: Client, others: Client) {
    let stage = try Stage { $0.topicDefaults.connect = connect }
    return (stage, try stage.persistentClient("source"), try stage.persistentClient("others"))
  }

  private func settle(_ stage: Stage) { stage.world.run(for: .seconds(2)) }

  @Test func anUpstreamIsSubscribedToOnceForAllAndCancelledAfterTheLast() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource(count: 5)
    let publication = source.publish(to: client, topic: "t", when: .connected)
    settle(stage)
    #expect(source.all.isEmpty)

    let recorders = (0..<4).map { _ in Recorder<TopicRecord>() }
    for recorder in recorders {
      others.topic("t").subscribe(recorder)
      settle(stage)
      #expect(source.all.count == 1)
    }
    // All have received the same values, replayed or live.
    for recorder in recorders { #expect(recorder.values == (0..<5).map { "0.\($0)" }) }
    for recorder in recorders.dropLast() {
      recorder.subscription?.cancel()
      settle(stage)
      #expect(source.active.count == 1)
    }
    recorders[3].subscription?.cancel()
    settle(stage)
    #expect(source.active.isEmpty)
    #expect(source.all.map(\.cancellations) == [1])

    let late = Recorder<TopicRecord>()
    others.topic("t", from: .new).subscribe(late)
    settle(stage)
    #expect(late.values == (0..<5).map { "1.\($0)" })
    #expect(source.active.count == 1)
    publication.cancel()
    settle(stage)
    #expect(source.active.isEmpty)
    let shown = try stage.wait { others.topicInfo("t", completion: $0) }
    #expect(shown.summary.publications == 0 && shown.summary.subscriptions == 1)
  }

  @Test func aTopicThatTakesTwoStartsItsSourceWithTheSecond() throws {
    let (stage, client, others) = try stage(.auto(2))
    let source = TestSource()
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorders = (0..<2).map { _ in Recorder<TopicRecord>() }
    others.topic("t").subscribe(recorders[0])
    settle(stage)
    #expect(source.all.isEmpty)
    others.topic("t").subscribe(recorders[1])
    settle(stage)
    #expect(source.active.count == 1)
    recorders[0].subscription?.cancel()
    settle(stage)
    #expect(source.active.count == 1)
    recorders[1].subscription?.cancel()
    settle(stage)
    #expect(source.active.isEmpty)
    _ = publication
  }

  @Test func aManualTopicStartsItsSourceByRequest() throws {
    let (stage, client, others) = try stage(.manual)
    let source = TestSource()
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle(stage)
    #expect(source.all.isEmpty)
    for round in 1...2 {
      try stage.wait { others.connectTopic("t", completion: $0) }
      settle(stage)
      #expect(source.active.count == 1 && source.all.count == round)
      try stage.wait { others.disconnectTopic("t", completion: $0) }
      settle(stage)
      #expect(source.active.isEmpty)
    }
    _ = publication
  }

  @Test func anImmediateTopicStartsItsSourceAtOnceAndForGood() throws {
    let (stage, client, others) = try stage(.immediate)
    let source = TestSource(count: 3)
    let publication = source.publish(to: client, topic: "t", when: .connected)
    settle(stage)
    #expect(source.active.count == 1)
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle(stage)
    #expect(recorder.values == ["0.0", "0.1", "0.2"])
    recorder.subscription?.cancel()
    settle(stage)
    #expect(source.active.count == 1)
    _ = publication
  }

  @Test func theSourcesEndIsHeardByAll() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource(count: 3, ending: .failure(.topicFailure("out of paper")))
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorders = (0..<2).map { _ in Recorder<TopicRecord>() }
    for recorder in recorders { others.topic("t").subscribe(recorder) }
    settle(stage)
    for recorder in recorders {
      #expect(recorder.values == ["0.0", "0.1", "0.2"])
      #expect(recorder.completion == .failure(.topicFailed))
    }
    #expect(source.active.isEmpty)
    _ = publication
  }

  @Test func backPressureReachesTheSource() throws {
    let stage = try Stage {
      $0.topicDefaults.connect = .auto(1)
      $0.topicDefaults.flow = .lossless
      $0.topicDefaults.bufferRecords = 4
    }
    let (client, others) = (try stage.client("source"), try stage.client("others"))
    let source = TestSource(count: 100)
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    others.topic("t").subscribe(recorder)
    settle(stage)
    #expect(recorder.values == ["0.0"])
    // The subscriber's values, and the records that the topic may buffer for it.
    #expect(source.active[0].given <= 1 + 4)
    for _ in 0..<99 {
      recorder.subscription?.request(.max(1))
      stage.world.run(for: .milliseconds(50))
      #expect(source.active[0].given <= recorder.values.count + 4)
    }
    settle(stage)
    #expect(recorder.values == (0..<100).map { "0.\($0)" })
    _ = publication
  }

  // MARK: Outages

  @Test func aResetOfTheSourcesConnectionIsAPause() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource()
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle(stage)
    for round in 0..<10 {
      source.active[0].give(Message("\(round)"))
      stage.world.run(for: .microseconds(60 * round))
      // The source's connection was the first one opened, and is the last one after a reconnection.
      let standing = stage.world.network.connections.filter { !$0.isOver }
      (round == 0 ? standing.first : standing.last)?.reset()
      settle(stage)
      #expect(source.all.count == 1 && source.active.count == 1)
    }
    #expect(recorder.values == (0..<10).map { "\($0)" })
    _ = publication
  }

  @Test func subscribersThatLeaveDuringAnOutageAreMissedAfterIt() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource()
    let publication = source.publish(to: client, topic: "t", when: .connected)
    settle(stage)
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle(stage)
    #expect(source.active.count == 1)
    // The source's connection is the first.
    stage.reset()
    recorder.subscription?.cancel()
    settle(stage)
    #expect(source.active.isEmpty)
    others.topic("t").subscribe(Recorder<TopicRecord>())
    settle(stage)
    #expect(source.active.count == 1 && source.all.count == 2)
    _ = publication
  }

  @Test func aBrokerThatCrashesTakesNobodysUpstreamWithIt() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource(count: 3)
    let publication = source.publish(to: client, topic: "t", when: .connected)
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle(stage)
    #expect(recorder.values == ["0.0", "0.1", "0.2"])
    stage.crash()
    stage.world.run(for: .seconds(5))
    #expect(source.active.count == 1)
    try stage.restart()
    stage.world.run(for: .seconds(60))
    // Whichever reconnected first: one upstream runs, and its subscriber gets its values.
    #expect(source.active.count == 1)
    source.active[0].give("more")
    settle(stage)
    #expect(recorder.values.last == "more")
    #expect(client.failure == nil && others.failure == nil)
    _ = publication
  }

  @Test func aClientThatIsClosedCancelsItsSources() throws {
    let (stage, client, others) = try stage(.auto(1))
    let source = TestSource()
    let publication = source.publish(to: client, topic: "t", when: .connected)
    others.topic("t").subscribe(Recorder<TopicRecord>())
    settle(stage)
    client.close()
    settle(stage)
    #expect(source.active.isEmpty && source.all.count == 1)
    _ = publication
  }

  // MARK: Subscribers that come and go

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func thereIsOneUpstreamAsLongAsSomebodyIsThere(seed: UInt64) throws {
    let stage = try Stage(seed: seed, conditions: SimulatedConditions()) {
      $0.topicDefaults.connect = .auto(1)
    }
    let client = try stage.persistentClient("source")
    let others = try (0..<3).map { try stage.persistentClient("other \($0)") }
    let source = TestSource(count: 20)
    let publication = source.publish(to: client, topic: "t", when: .connected)
    var random = SeededRandom(seed: seed)
    var recorders: [Recorder<TopicRecord>] = []
    for _ in 0..<60 {
      switch random.next(in: 0...9) {
      case 0..<5:
        let recorder = Recorder<TopicRecord>(initial: .max(5))
        others[random.next(in: 0...2)].topic("t", from: .new).subscribe(recorder)
        recorders.append(recorder)
      case 5..<9:
        if !recorders.isEmpty {
          recorders.remove(at: random.next(in: 0...recorders.count - 1)).subscription?.cancel()
        }
      default: stage.reset()
      }
      stage.world.run(for: .milliseconds(Int64(random.next(in: 0...199))))
      #expect(source.active.count <= 1)
    }
    stage.world.run(for: .seconds(60))
    #expect(source.active.count == (recorders.isEmpty ? 0 : 1))
    for recorder in recorders { recorder.subscription?.cancel() }
    stage.world.run(for: .seconds(60))
    #expect(source.active.isEmpty)
    publication.cancel()
    stage.world.run(for: .seconds(1))
    let shown = try stage.wait { others[0].topicInfo("t", completion: $0) }
    #expect(shown.summary.publications == 0 && shown.summary.subscriptions == 0)
  }

  // MARK: Threads

  @Test func cancellingFromAnyThreadLeavesNoUpstreamBehind() async throws {
    let setting = try await LoopbackSetting()
    var topic = TopicSettings()
    topic.connect = .auto(1)
    try await setting.client.createTopic("t", settings: topic)
    let others = try await setting.connect()
    for _ in 0..<40 {
      let source = TestSource(count: 1_000)
      let publication = source.publish(to: setting.client, topic: "t", when: .connected)
      await withTaskGroup { group in
        group.addTask {
          for _ in 0..<10 {
            let subscription = others.topic("t", from: .new).sink { _ in
            } receiveValue: { _ in
            }
            await Task.yield()
            subscription.cancel()
          }
        }
        for _ in 0..<2 {
          group.addTask {
            for _ in 0..<Int.random(in: 0..<50) { await Task.yield() }
            publication.cancel()
          }
        }
        group.addTask {
          for _ in 0..<20 {
            source.active.first?.give("now and then")
            await Task.yield()
          }
        }
      }
      // A cancellation may be in progress on the loop until the loop has done its queued work.
      try await setting.settle()
      #expect(source.active.isEmpty)
      #expect(source.all.allSatisfy { $0.cancellations == 1 })
    }
    try await setting.settle()
    #expect(try await setting.client.topicInfo("t").summary.publications == 0)
  }
}
