import CombineExtras
import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// The same program with `share(replay:scope:)` in a process and with a remote topic: subscribers get the same events, and the source is used in the
/// same way.
@Suite struct ShareComparisonTests {
  /// A step of a program; A and B are subscribers.
  enum Step: String, Sendable {
    case subscribeA, subscribeB, cancelA, cancelB, giveTwo, finish, fail
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    /// How many values each run of the source delivers immediately, and whether it then finishes.
    var values: Int
    var finishes: Bool
    var steps: [Step]

    var testDescription: String { name }
  }

  static let cases = [
    Case(name: "A completes, then B", values: 3, finishes: true, steps: [.subscribeA, .subscribeB]),
    Case(
      name: "A completes, then B cancels, then A again", values: 3, finishes: true,
      steps: [.subscribeA, .subscribeB, .cancelB, .subscribeA]),
    Case(
      name: "A cancels midway, then B", values: 3, finishes: false,
      steps: [.subscribeA, .giveTwo, .cancelA, .subscribeB, .giveTwo]),
    Case(
      name: "A and B overlap", values: 3, finishes: false,
      steps: [.subscribeA, .giveTwo, .subscribeB, .giveTwo, .cancelA, .giveTwo, .finish]),
    Case(
      name: "A and B overlap, the source finishes, then A again", values: 1, finishes: false,
      steps: [.subscribeA, .subscribeB, .giveTwo, .finish, .subscribeA, .giveTwo]),
    Case(
      name: "failure, then B", values: 2, finishes: false,
      steps: [.subscribeA, .giveTwo, .fail, .subscribeB, .giveTwo, .finish]),
    Case(name: "an empty source", values: 0, finishes: true, steps: [.subscribeA, .subscribeB]),
    Case(
      name: "nothing for a while, then the end, then B", values: 0, finishes: false,
      steps: [.subscribeA, .finish, .subscribeB, .giveTwo, .cancelB]),
  ]

  static let scopes: [(Publishers.ReplayScope, TopicSettings.Scope)] = [
    (.whileConnected, .whileConnected), (.forever, .forever),
  ]

  /// Runs a program. Returns the observed events.
  private func run(
    _ program: Case, _ topic: AnyPublisher<String, ClientError>, _ source: TestSource, settle: () -> Void
  ) -> [String] {
    var recorders: [Recorder<String>] = []
    var (a, b): (Recorder<String>?, Recorder<String>?)
    func subscribe() -> Recorder<String> {
      let recorder = Recorder<String>()
      recorders.append(recorder)
      topic.subscribe(recorder)
      return recorder
    }
    for step in program.steps {
      switch step {
      case .subscribeA: a = subscribe()
      case .subscribeB: b = subscribe()
      case .cancelA: a?.subscription?.cancel()
      case .cancelB: b?.subscription?.cancel()
      case .giveTwo: for number in 0..<2 { source.active.last?.give(Message("more \(number)")) }
      case .finish: source.active.last?.end(.finished)
      case .fail: source.active.last?.end(.failure(.topicFailure("out of paper")))
      }
      settle()
    }
    return recorders.map { "\($0.history)" }
      + [
        "\(source.all.count) runs, \(source.active.count) active, \(source.all.map(\.cancellations)) cancelled"
      ]
  }

  private func source(_ program: Case) -> TestSource {
    TestSource(count: program.values, ending: program.finishes ? .finished : nil)
  }

  private func local(_ program: Case, replay: Int, _ scope: Publishers.ReplayScope) -> [String] {
    let source = source(program)
    let shared = source.map(\.string).share(replay: replay, scope: scope)
    return run(program, shared.eraseToAnyPublisher(), source) {}
  }

  @Test(arguments: cases, [0, 2, 10])
  func aRemoteTopicIsLikeTheOperator(_ program: Case, replay: Int) throws {
    for (local, remote) in Self.scopes {
      let stage = try Stage()
      let (producer, others) = (try stage.persistentClient("source"), try stage.persistentClient("others"))
      let source = source(program)
      let settings = TopicSettings.shared(replay: UInt64(replay), scope: remote)
      let publication = source.publish(to: producer, topic: "t", settings: settings, when: .connected)
      stage.world.run(for: .seconds(2))
      let topic = others.topic("t").decoded { $0.string }
      let heard = run(program, topic.eraseToAnyPublisher(), source) { stage.world.run(for: .seconds(2)) }
      #expect(heard == self.local(program, replay: replay, local), "\(remote)")
      #expect(producer.failure == nil && others.failure == nil)
      _ = publication
    }
  }

  /// Values of the first run that are in transit when its subscriber leaves never reach the next one, whenever it subscribes.
  @Test(arguments: 0..<40)
  func nothingOfARunReachesTheNextSubscribers(_ step: Int) throws {
    let stage = try Stage(seed: UInt64(step), conditions: SimulatedConditions())
    let (producer, others) = (try stage.persistentClient("source"), try stage.persistentClient("others"))
    let source = TestSource(count: 2_000)
    let publication = source.publish(to: producer, topic: "t", settings: .shared(replay: 5), when: .connected)
    stage.world.run(for: .seconds(2))
    for round in 0..<3 {
      let recorder = Recorder<TopicRecord>()
      others.topic("t").subscribe(recorder)
      stage.world.run(for: .microseconds(Int64(300 * step)))
      recorder.subscription?.cancel()
      stage.world.run(for: .microseconds(Int64(100 * (step % 7))))
      let run = recorder.values.first.map { String($0.prefix { $0 != "." }) }
      #expect(
        recorder.values == (0..<recorder.values.count).map { "\(run ?? "").\($0)" }, "round \(round)")
    }
    let last = Recorder<TopicRecord>()
    others.topic("t").subscribe(last)
    stage.world.run(for: .seconds(60))
    #expect(last.values == (0..<2_000).map { "\(source.all.count - 1).\($0)" })
    #expect(source.active.count == 1)
    _ = publication
  }

  @Test func severalSourcesBeginAnewTogether() throws {
    let stage = try Stage()
    let producers = try (0..<3).map { source in
      try stage.persistentClient("source \(source)") { $0.seed = UInt64(source + 2) }
    }
    let others = try stage.persistentClient("others")
    let sources = (0..<3).map { _ in TestSource() }
    let publications = zip(producers, sources).map { client, source in
      source.publish(to: client, topic: "t", settings: .shared, when: .connected)
    }
    for round in 1...3 {
      let recorder = Recorder<TopicRecord>()
      others.topic("t").subscribe(recorder)
      stage.world.run(for: .seconds(2))
      #expect(sources.map { $0.active.count } == [1, 1, 1])
      #expect(sources.map { $0.all.count } == [round, round, round])
      sources[round % 3].active[0].give("value")
      sources[round % 3].active[0].end(.finished)
      stage.world.run(for: .seconds(2))
      #expect(recorder.history == [.subscription, .value("value"), .finished])
      #expect(sources.map { $0.active.count } == [0, 0, 0])
    }
    _ = publications
  }

  @Test func theSourceIsntSubscribedToForSubscribersOfALifeThatIsOver() throws {
    let stage = try Stage()
    let (producer, others) = (try stage.persistentClient("source"), try stage.persistentClient("others"))
    let source = TestSource(count: 3, ending: .finished)
    let publication = source.publish(to: producer, topic: "t", settings: .shared(replay: 3), when: .connected)
    // It has room for all three, and asks for none of them.
    let slow = Recorder<TopicRecord>(initial: .none)
    others.topic("t").subscribe(slow)
    let quick = Recorder<TopicRecord>()
    others.topic("t").subscribe(quick)
    stage.world.run(for: .seconds(60))
    #expect(source.all.count == 1)
    #expect(quick.history.last == .finished)
    let next = Recorder<TopicRecord>()
    others.topic("t").subscribe(next)
    stage.world.run(for: .seconds(2))
    #expect(source.all.count == 2)
    #expect(next.values == ["1.0", "1.1", "1.2"])
    slow.subscription?.request(.unlimited)
    stage.world.run(for: .seconds(2))
    #expect(slow.values == ["0.0", "0.1", "0.2"] && slow.history.last == .finished)
    _ = publication
  }
}
