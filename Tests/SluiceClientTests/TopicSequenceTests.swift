import ReactiveCore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// Topics in `for await` loops, with a broker on real sockets.
@Suite struct TopicSequenceTests {
  private let setting: LoopbackSetting

  init() async throws {
    setting = try await LoopbackSetting()
  }

  /// A topic's subscriptions at the broker, after all work queued on this client.
  private func subscriptions(_ topic: String) async throws -> [TopicInfo.Subscription] {
    try await setting.client.topicInfo(topic).subscriptions
  }

  @Test func recordsComeInOrderAndEndWithTheTopic() async throws {
    try await setting.publish(100, to: "t")
    try await setting.client.subject("t").complete()
    for prefetch in [SubscriptionPlan.Prefetch.byRequest, .keepFull(1), .keepFull(16), .keepFull(1_000)] {
      var texts: [String] = []
      for try await record in setting.client.topic("t", prefetch: prefetch).values {
        texts.append(record.string)
      }
      #expect(texts == (0..<100).map { "\($0)" })
    }
  }

  @Test func decodedTopicsAreSequencesToo() async throws {
    try await setting.publish(10, to: "t")
    try await setting.client.subject("t").complete()
    let numbers = setting.client.topic("t").decoded(decodeFailure: .skip) { record in
      guard let number = Int(record.string), number % 2 == 0 else { throw ClientError.topicFailure("odd") }
      return number
    }
    var sum = 0
    for try await number in numbers.values { sum += number }
    #expect(sum == 20)
  }

  @Test func aFailureIsThrownWithItsTypeOnce() async throws {
    let subject = setting.client.subject("t")
    try await subject.publish("a")
    try await subject.complete(.failure(.topicFailure("enough")))
    var iterator = setting.client.topic("t").values.makeAsyncIterator()
    #expect(try await iterator.next()?.string == "a")
    do throws(ClientError) {
      _ = try await iterator.next()
      Issue.record("the topic failed")
    } catch {
      #expect(error.code == .topicFailed)
    }
    #expect(try await iterator.next()?.string == nil)
  }

  @Test func whatIsAskedForIsWhatTheLoopTakes() async throws {
    try await setting.publish(100, to: "t")
    var iterator = setting.client.topic("t").values.makeAsyncIterator()
    for taken in 1...5 as ClosedRange<UInt64> {
      _ = try await iterator.next()
      let shown = try await subscriptions("t")
      #expect(shown.map(\.sent) == [taken])
    }
    _ = iterator
  }

  @Test func aPrefetchIsKeptFullAndNotExceeded() async throws {
    try await setting.publish(100, to: "t")
    var iterator = setting.client.topic("t", prefetch: .keepFull(10)).values.makeAsyncIterator()
    for taken in 1...40 as ClosedRange<UInt64> {
      _ = try await iterator.next()
      // Demand requested with that value has arrived before the reply to this request.
      let sent = try #require(try await subscriptions("t").first).sent
      #expect(sent <= taken + 10)
      #expect(sent >= taken + 5)
    }
    _ = iterator
  }

  @Test func leavingTheLoopUnsubscribes() async throws {
    try await setting.publish(3, to: "t")
    for try await _ in setting.client.topic("t").values { break }
    #expect(try await subscriptions("t").isEmpty)
  }

  @Test(arguments: [SubscriptionPlan.Prefetch.byRequest, .keepFull(8)])
  func cancellingTheTaskUnsubscribes(prefetch: SubscriptionPlan.Prefetch) async throws {
    try await setting.publish(20, to: "t")
    let topic = setting.client.topic("t", prefetch: prefetch)
    let taken = Mutex(0)
    let task = Task {
      for try await _ in topic.values { taken.withLock { $0 += 1 } }
    }
    while taken.withLock({ $0 }) < 20 { await Task.yield() }
    // It waits for a record that never comes.
    #expect(try await subscriptions("t").count == 1)
    task.cancel()
    try await task.value
    #expect(try await subscriptions("t").isEmpty)
  }

  @Test func cancellingAtAnyMomentUnsubscribes() async throws {
    try await setting.publish(2_000, to: "t")
    for round in 0..<60 {
      let topic = setting.client.topic("t", prefetch: round % 2 == 0 ? .byRequest : .keepFull(round))
      let task = Task { () -> Int in
        var count = 0
        for try await record in topic.values {
          #expect(record.offset == count)
          count += 1
        }
        return count
      }
      for _ in 0..<round * 5 { await Task.yield() }
      task.cancel()
      #expect(try await task.value <= 2_000)
      #expect(try await subscriptions("t").isEmpty)
    }
  }

  @Test func aTaskThatIsCancelledAlreadyGetsNothing() async throws {
    try await setting.publish(3, to: "t")
    let topic = setting.client.topic("t")
    let task = Task { () -> Int in
      while !Task.isCancelled { await Task.yield() }
      var count = 0
      for try await _ in topic.values { count += 1 }
      return count
    }
    task.cancel()
    #expect(try await task.value == 0)
    #expect(try await subscriptions("t").isEmpty)
  }

  @Test func aClosedClientIsThrown() async throws {
    let client = try await setting.connect()
    var iterator = client.topic("t").values.makeAsyncIterator()
    client.close()
    do throws(ClientError) {
      _ = try await iterator.next()
      Issue.record("a closed client delivers")
    } catch {
      #expect(error.code == .closed)
    }
  }

  @Test func eachIterationBeginsAnew() async throws {
    try await setting.publish(5, to: "t")
    try await setting.client.subject("t").complete()
    let records = setting.client.topic("t").values
    for _ in 0..<2 {
      var count = 0
      for try await record in records {
        #expect(record.offset == count)
        count += 1
      }
      #expect(count == 5)
    }
  }
}
