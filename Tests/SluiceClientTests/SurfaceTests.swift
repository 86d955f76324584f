import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import Testing

/// The API available with two imports, the library's and Combine's.
@Suite struct SurfaceTests {
  @Test func requestsCanBeAskedAndReadWithTheLibraryAlone() throws {
    let stage = try Stage()
    let client = try stage.client()
    let info = try stage.wait {
      client.createTopic(
        "t", settings: TopicSettings(replayRecords: 5, replayBytes: 1_000_000), completion: $0)
    }
    #expect(info.settings.replayRecords == 5)
    #expect(info.summary.topic == "t")
    #expect(info.subscriptions.isEmpty)
    #expect(info.publications.first?.received == nil)
    let topics = try stage.wait(client.topics(completion:))
    #expect(topics.map(\.nextOffset) == [0])
    #expect(topics[0].ending == nil)
  }

  @Test func aTopicIsAPublisherLikeAnother() throws {
    let stage = try Stage()
    let client = try stage.client()
    let subject = client.subject("numbers")
    var sums: [Int] = []
    let cancellable = client.topic("numbers")
      .compactMap { Int($0.string) }
      .filter { $0 % 2 == 0 }
      .output(in: 0..<3)
      .collect()
      .sink { _ in
      } receiveValue: {
        sums = $0
      }
    for number in 1...10 { subject.send(Message("\(number)")) }
    #expect(stage.world.run { sums == [2, 4, 6] })
    // Three were enough, so the subscription has ended.
    stage.world.run(for: .seconds(1))
    let info = try stage.wait { client.topicInfo("numbers", completion: $0) }
    #expect(info.summary.subscriptions == 0)
    _ = cancellable
  }

  @Test func aTopicCanBeSharedAndErased() throws {
    let stage = try Stage()
    let client = try stage.client()
    let shared: AnyPublisher<TopicRecord, ClientError> = client.topic("t").share().eraseToAnyPublisher()
    let (first, second) = (Recorder<TopicRecord>(), Recorder<TopicRecord>())
    shared.subscribe(first)
    shared.subscribe(second)
    let subject: some Subject<Message, ClientError> = client.subject("t")
    subject.send("a")
    #expect(stage.world.run { first.values == ["a"] && second.values == ["a"] })
    let info = try stage.wait { client.topicInfo("t", completion: $0) }
    #expect(info.summary.subscriptions == 1)
  }

  @Test func errorsSayWhatToDo() {
    let error = ClientError.topicFailure("out of paper", code: 201)
    #expect(error.code == .topicFailed)
    #expect("\(error)" == "out of paper")
    #expect("\(error.code)" == "topic-failed")
  }
}
