import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// Requests and replies, with a manual replier in place of the library's.
@Suite struct RequestReplyTests {
  /// Collects requests.
  private final class Service {
    var requests: [TopicRecord] = []
    private var subscription: AnyCancellable?

    init(_ client: Client, _ topic: String) {
      subscription = client.topic(topic, from: .new).eraseToAnyPublisher().sink { _ in
      } receiveValue: { [unowned self] in
        requests.append($0)
      }
    }

    /// Replies to the request with that text.
    func reply(to text: String, _ message: Message, with client: Client) throws {
      let request = try #require(requests.first { $0.string == text })
      let headers = request.headers
      let topic = try #require(headers.first { $0.name == "reply-to" }?.string)
      var message = message
      message.headers += headers.filter { $0.name == "correlation-id" }
      client.subject(topic).send(message)
    }
  }

  private func ask(_ client: Client, _ text: String, timeout: Duration = .seconds(5)) -> Box<
    Result<String, ClientError>?
  > {
    let answer = Box<Result<String, ClientError>?>(nil)
    client.request("svc", Message(text), timeout: timeout) { answer.value = $0.map(\.string) }
    return answer
  }

  @Test func eachRequestGetsItsReply() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let (first, second) = (ask(asking, "1"), ask(asking, "2"))
    #expect(stage.world.run { service.requests.count == 2 })
    try service.reply(to: "2", "two", with: answering)
    try service.reply(to: "1", "one", with: answering)
    #expect(stage.world.run { first.value != nil && second.value != nil })
    #expect(first.value == .success("one"))
    #expect(second.value == .success("two"))
    // One inbox, which retains nothing, serves all requests.
    let inbox = try #require(service.requests[0].headers.first { $0.name == "reply-to" }?.string)
    #expect(service.requests[1].headers.contains { $0.name == "reply-to" && $0.string == inbox })
    let info = try stage.wait { asking.topicInfo(inbox, completion: $0) }
    #expect(info.settings.autoDelete == true)
    #expect(info.summary.firstOffset == info.summary.nextOffset)
  }

  @Test func theFirstReplyCountsAndOddOnesAreDropped() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let answer = ask(asking, "1")
    #expect(stage.world.run { service.requests.count == 1 })
    let inbox = try #require(service.requests[0].headers.first { $0.name == "reply-to" }?.string)
    let subject = answering.subject(inbox)
    subject.send("without a number")
    subject.send(Message("of no request", headers: [.init("correlation-id", "ffff")]))
    subject.send(Message("not a number", headers: [.init("correlation-id", "xyz")]))
    try service.reply(to: "1", "right", with: answering)
    try service.reply(to: "1", "again", with: answering)
    #expect(stage.world.run { answer.value != nil })
    #expect(answer.value == .success("right"))
  }

  @Test func aReplyMaySayThatThereIsNone() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let answer = ask(asking, "1")
    #expect(stage.world.run { service.requests.count == 1 })
    try service.reply(
      to: "1", Message("", headers: [.init("reply-error", "out of stock")]), with: answering)
    #expect(stage.world.run { answer.value != nil })
    guard case .failure(let error) = answer.value else { return #expect(Bool(false)) }
    #expect(error.code == .replyFailed)
    #expect(error.message == "the request couldn't be answered: out of stock")
    #expect(error.topic == "svc")
  }

  @Test func withoutAReplyTheRequestTimesOut() throws {
    let stage = try Stage()
    let (client, answering) = (try stage.client(), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", client)) == 1 })
    let begin = stage.world.now
    let answer = ask(client, "1", timeout: .seconds(3))
    #expect(stage.world.run { answer.value != nil })
    #expect(stage.world.now - begin >= .seconds(3))
    guard case .failure(let error) = answer.value else { return #expect(Bool(false)) }
    #expect(error.code == .requestTimeout)
    #expect(
      error.message == "no reply came within 3.0 seconds; does a subscriber of topic svc reply to requests?")
    #expect(service.requests.map(\.string) == ["1"])
  }

  @Test func aTopicWithoutSubscribersCannotReply() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    // The topic doesn't exist, and the request doesn't create it.
    let unknown = try stage.failure { asking.request("svc", "1", timeout: .seconds(1000), completion: $0) }
    #expect(unknown?.code == .noResponders)
    #expect(
      unknown?.message
        == "no subscriber is attached to topic svc, so nothing can reply; start one that replies, then ask again"
    )
    #expect(try stage.subscriptions("svc", asking) == nil)
    // Nor if it exists: the record isn't accepted.
    try stage.publish(["0"], to: "svc", with: answering)
    let alone = try stage.failure { asking.request("svc", "2", timeout: .seconds(1000), completion: $0) }
    #expect(alone?.code == .noResponders)
    // A subscriber changes that for an open publication, until it leaves.
    var service: Service? = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let answer = ask(asking, "3")
    #expect(stage.world.run { service?.requests.count == 1 })
    try service?.reply(to: "3", "three", with: answering)
    #expect(stage.world.run { answer.value != nil })
    #expect(answer.value == .success("three"))
    service = nil
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 0 })
    let left = try stage.failure { asking.request("svc", "4", timeout: .seconds(1000), completion: $0) }
    #expect(left?.code == .noResponders)
    #expect(try stage.wait { asking.topicInfo("svc", completion: $0) }.summary.nextOffset == 2)
  }

  /// A denied request returns its grant: a topic that follows its subscribers grants as much as before.
  @Test func aRefusedRequestUsesUpNoGrant() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 2
    _ = try stage.wait { asking.createTopic("svc", settings: settings, completion: $0) }
    for _ in 0..<10 {
      let error = try stage.failure { asking.request("svc", "x", timeout: .seconds(1000), completion: $0) }
      #expect(error?.code == .noResponders)
    }
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let answer = ask(asking, "1")
    #expect(stage.world.run { service.requests.count == 1 })
    try service.reply(to: "1", "one", with: answering)
    #expect(stage.world.run { answer.value != nil })
    #expect(answer.value == .success("one"))
  }

  @Test func aRequestThatCannotBePublishedFailsAtOnce() throws {
    let stage = try Stage()
    let client = try stage.client()
    let error = try stage.failure { client.request("no name", "x", completion: $0) }
    #expect(error?.code == .invalidTopic)
  }

  @Test func closingTheClientEndsWhatIsWaitedFor() throws {
    let stage = try Stage()
    let client = try stage.client()
    let answering = try stage.client("answering")
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", client)) == 1 })
    let answer = ask(client, "1", timeout: .seconds(1000))
    #expect(stage.world.run { service.requests.count == 1 })
    client.close()
    #expect(stage.world.run { answer.value != nil })
    #expect(answer.value == .failure(.closedHere))
  }

  @Test func releasingTheClientEndsWhatIsWaitedFor() throws {
    let stage = try Stage()
    var client: Client? = try stage.client()
    let answering = try stage.client("answering")
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", client!)) == 1 })
    let answer = ask(client!, "1", timeout: .seconds(1000))
    #expect(stage.world.run { service.requests.count == 1 })
    client = nil
    #expect(stage.world.run { answer.value != nil })
    guard case .failure(let error) = answer.value else { return #expect(Bool(false)) }
    #expect(error.code == .closed)
  }

  @Test func aLostConnectionLosesNeitherRequestNorReply() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.persistentClient("asking"), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", answering)) == 1 })
    let answer = ask(asking, "1", timeout: .seconds(100))
    #expect(stage.world.run { service.requests.count == 1 })
    stage.reset()
    try service.reply(to: "1", "late", with: answering)
    #expect(stage.world.run { answer.value != nil })
    #expect(answer.value == .success("late"))
    #expect(service.requests.count == 1)
  }

  @Test func asAStepOfAPipeline() throws {
    let stage = try Stage()
    let (asking, answering) = (try stage.client("asking"), try stage.client("answering"))
    let service = Service(answering, "svc")
    #expect(stage.world.run { (try? stage.subscriptions("svc", asking)) == 1 })
    let recorder = Recorder<TopicRecord>()
    asking.publisher(requesting: "svc", "1").subscribe(recorder)
    #expect(stage.world.run { service.requests.count == 1 })
    try service.reply(to: "1", "one", with: answering)
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history == [.subscription, .value("one"), .finished])
  }

  @Test func onlyTheSubjectsUsedLastAreKept() throws {
    let stage = try Stage()
    let client = try stage.client()
    var cache = SubjectCache(limit: 2) { $0.subject($1) }
    let a = cache.use("a", of: client)
    _ = cache.use("b", of: client)
    #expect(cache.use("a", of: client) === a)
    let c = cache.use("c", of: client)
    #expect(cache.use("a", of: client) === a)
    #expect(cache.use("c", of: client) === c)
    try stage.wait { c.complete(.finished, completion: $0) }
    #expect(cache.use("c", of: client) !== c)
  }
}

/// The library's replier, on real threads and sockets.
@Suite struct ResponderTests {
  private func withBroker(_ body: (String) async throws -> Void) async throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [.host("127.0.0.1", port: 0)]
    configuration.loops = 1
    // This process may be delayed for a while.
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    let broker = try Broker(configuration)
    defer { broker.stop() }
    try await body("\(try broker.start()[0])")
  }

  private func connect(_ address: String) async throws -> Client {
    var options = ClientOptions()
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
    return try await Client.connect(to: address, options: options)
  }

  @Test func repliesComeFromItsHandler() async throws {
    try await withBroker { address in
      let (asking, answering) = (try await connect(address), try await connect(address))
      let most = Mutex((now: 0, most: 0))
      let service = answering.respond(to: "double", concurrent: 4) { request in
        most.withLock {
          $0.now += 1
          $0.most = max($0.most, $0.now)
        }
        defer { most.withLock { $0.now -= 1 } }
        await Task.yield()
        guard let number = Int(request.string) else { throw TopicFailure(message: "no such thing") }
        return Message("\(number * 2)")
      }
      // It answers requests published after its subscription is open.
      _ = try await answering.ping()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<100 {
          group.addTask {
            let reply = try await asking.request("double", Message("\(number)"), timeout: .seconds(600))
            #expect(reply.string == "\(number * 2)")
          }
        }
        try await group.waitForAll()
      }
      #expect(most.withLock { $0.most } <= 4)
      let error = await #expect(throws: ClientError.self) {
        _ = try await asking.request("double", "x", timeout: .seconds(600))
      }
      #expect(error?.code == .replyFailed)
      #expect(error?.message == "the request couldn't be answered: no such thing")
      service.cancel()
    }
  }

  @Test func cancellingTheWaitingTaskEndsTheWait() async throws {
    try await withBroker { address in
      let client = try await connect(address)
      let silent = client.topic("silent", from: .new).sink { _ in
      } receiveValue: { _ in
      }
      defer { silent.cancel() }
      _ = try await client.ping()
      let task = Task { try await client.request("silent", "x", timeout: .seconds(600)) }
      task.cancel()
      let result = await task.result
      #expect(throws: ClientError.self) { try result.get() }
      if case .failure(let error as ClientError) = result { #expect(error.code == .cancelled) }
    }
  }

  @Test func cancellingTheReplierCancelsItsTasks() async throws {
    try await withBroker { address in
      let (asking, answering) = (try await connect(address), try await connect(address))
      let (started, cancelled) = (AsyncStream<Void>.makeStream(), AsyncStream<Void>.makeStream())
      let service = answering.respond(to: "svc") { _ in
        started.continuation.yield()
        try? await Task.sleep(for: .seconds(600))
        if Task.isCancelled { cancelled.continuation.yield() }
        return "late"
      }
      _ = try await answering.ping()
      let task = Task { try await asking.request("svc", "x", timeout: .seconds(600)) }
      for await _ in started.stream { break }
      service.cancel()
      for await _ in cancelled.stream { break }
      task.cancel()
      _ = await task.result
      let left = try await asking.topicInfo("svc").summary.subscriptions
      #expect(left == 0)
    }
  }
}
