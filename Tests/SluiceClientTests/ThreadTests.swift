import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceClient

/// The client on real threads and sockets, used from several threads at once.
@Suite struct ThreadTests {
  /// Counts values; a test may read the count from other threads.
  private final class Counter: Subscriber, Sendable {
    typealias Input = TopicRecord
    typealias Failure = ClientError

    let subscription = Mutex<(any Subscription & Sendable)?>(nil)
    let count = Atomic<Int>(0)
    let requested = Atomic<Int>(0)
    let excess = Atomic<Int>(0)
    let isCancelled = Atomic<Bool>(false)
    let late = Atomic<Int>(0)
    let completions = Atomic<Int>(0)
    let perValue: Subscribers.Demand

    init(perValue: Subscribers.Demand = .none) {
      self.perValue = perValue
    }

    func receive(subscription: any Subscription) {
      self.subscription.withLock { $0 = (subscription as! RemoteSubscription) }
    }

    func receive(_ input: TopicRecord) -> Subscribers.Demand {
      if isCancelled.load(ordering: .sequentiallyConsistent) { late.add(1, ordering: .relaxed) }
      let count = count.add(1, ordering: .relaxed).newValue
      if count > requested.load(ordering: .sequentiallyConsistent) { excess.add(1, ordering: .relaxed) }
      if let more = perValue.max { requested.add(more, ordering: .sequentiallyConsistent) }
      return perValue
    }

    func receive(completion: Subscribers.Completion<ClientError>) {
      completions.add(1, ordering: .relaxed)
    }

    func request(_ count: Int) {
      requested.add(count, ordering: .sequentiallyConsistent)
      subscription.withLock { $0 }?.request(.max(count))
    }

    func cancel() {
      subscription.withLock { $0 }?.cancel()
      isCancelled.store(true, ordering: .sequentiallyConsistent)
    }
  }

  @Test func requestsFromSeveralThreadsAddUp() async throws {
    let setting = try await LoopbackSetting()
    try await setting.publish(5_000, to: "t")
    let counter = Counter()
    setting.client.topic("t").subscribe(counter)
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<1_000 { counter.request(1) }
        }
      }
    }
    while counter.count.load(ordering: .relaxed) < 4_000 { await Task.yield() }
    try await setting.settle()
    #expect(counter.count.load(ordering: .relaxed) == 4_000)
    #expect(counter.excess.load(ordering: .relaxed) == 0)
  }

  @Test func afterCancelOnAnotherThreadNothingMoreIsHeard() async throws {
    let setting = try await LoopbackSetting()
    try await setting.publish(20_000, to: "t")
    for round in 0..<20 {
      let counter = Counter(perValue: .max(1))
      setting.client.topic("t").subscribe(counter)
      counter.request(100)
      while counter.count.load(ordering: .relaxed) < round * 50 { await Task.yield() }
      counter.cancel()
      try await setting.settle()
      let count = counter.count.load(ordering: .relaxed)
      // One call may have been in progress.
      #expect(counter.late.load(ordering: .relaxed) <= 1)
      try await setting.settle()
      #expect(counter.count.load(ordering: .relaxed) == count)
      #expect(counter.completions.load(ordering: .relaxed) == 0)
    }
    #expect(try await setting.client.topicInfo("t").summary.subscriptions == 0)
  }

  @Test func eachThreadsMessagesKeepTheirOrder() async throws {
    let setting = try await LoopbackSetting()
    let subject = setting.client.subject("t")
    let threads = 4
    let each = 5_000
    await withTaskGroup { group in
      for thread in 0..<threads {
        group.addTask {
          for number in 0..<each { subject.send(Message("\(thread) \(number)")) }
        }
      }
    }
    try await subject.complete()
    var next = [Int](repeating: 0, count: threads)
    var failures = 0
    for try await record in setting.client.topic("t").values {
      let parts = record.string.split(separator: " ").map { Int($0)! }
      if next[parts[0]] != parts[1] { failures += 1 }
      next[parts[0]] += 1
    }
    #expect(next == [Int](repeating: each, count: threads))
    #expect(failures == 0)
  }

  @Test func closingWhileEverythingRuns() async throws {
    let setting = try await LoopbackSetting()
    try await setting.publish(1_000, to: "t")
    for _ in 0..<10 {
      let client = try await setting.connect()
      let counters = (0..<3).map { _ in Counter(perValue: .max(1)) }
      for counter in counters {
        client.topic("t").subscribe(counter)
        counter.request(10)
      }
      let subject = client.subject("other")
      await withTaskGroup { group in
        group.addTask {
          for number in 0..<200 { subject.send(Message("\(number)")) }
        }
        group.addTask {
          for _ in 0..<200 { counters[0].request(1) }
          counters[0].cancel()
        }
        group.addTask {
          await Task.yield()
          client.close()
        }
      }
      do {
        _ = try await client.ping()
        Issue.record("a closed client answers")
      } catch {
        #expect(error.code == .closed)
      }
      #expect(counters[1].completions.load(ordering: .relaxed) == 1)
      #expect(counters[2].completions.load(ordering: .relaxed) == 1)
      #expect(counters[0].completions.load(ordering: .relaxed) <= 1)
    }
  }

  // MARK: Waiting

  @Test func whoeverWaitsCanBeCancelled() async throws {
    let setting = try await LoopbackSetting()
    let subject = setting.client.subject("not a name", buffer: .init(records: 1))
    do {
      try await subject.publish("a")
      Issue.record("published to a topic that can't be")
    } catch {
      #expect(error.code == .invalidTopic)
    }
    let full = setting.client.subject("t", buffer: .init(records: 1))
    let waiting = (0..<5).map { number in
      Task { () -> ClientError.Code? in
        do {
          try await full.publish(Message("\(number)"))
          return nil
        } catch {
          return (error as? ClientError)?.code
        }
      }
    }
    for task in waiting { task.cancel() }
    for task in waiting {
      let code = await task.value
      #expect(code == nil || code == .cancelled)
    }
    // No subscription is left.
    try await full.publish("last")
  }

  @Test func connectingCanBeCancelled() async throws {
    let loop = try SharedLoop.loop.get()
    // Accepts connections and sends nothing.
    let streams = Box<[any ByteStream]>([])
    let listener = try SharedLoop.network.listen(
      at: .host("127.0.0.1", port: 0), group: LoopGroup([loop])
    ) { stream, _ in streams.value.append(stream) }
    defer {
      listener.close()
      loop.execute {
        for stream in streams.value { stream.close() }
        streams.value = []
      }
    }
    let address = "\(listener.address)"
    let task = Task { () -> ClientError.Code? in
      var options = ClientOptions()
      options.connectTimeout = .seconds(600)
      do {
        _ = try await Client.connect(to: address, options: options)
        return nil
      } catch {
        return (error as? ClientError)?.code
      }
    }
    task.cancel()
    #expect(await task.value == .cancelled)
  }

  @Test func asyncSequencesEndWithTheTopic() async throws {
    let setting = try await LoopbackSetting()
    let subject = setting.client.subject("t")
    try await subject.publish("a")
    try await subject.publish("b")
    try await subject.complete(.failure(.topicFailure("enough")))
    var texts: [String] = []
    do {
      for try await record in setting.client.topic("t").values { texts.append(record.string) }
      Issue.record("the topic failed")
    } catch {
      #expect(texts == ["a", "b"])
      #expect(error.code == .topicFailed)
    }
  }
}
