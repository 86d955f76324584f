import ReactiveCore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// The Reactive Streams rules about threads, on real threads and sockets: signals come one at a time (1.3), and request and cancel are called from
/// anywhere (3.1, 3.5). The connection either stays up or breaks repeatedly.
@Suite struct RuleThreadTests {
  /// Counts on any thread, and checks each call against the rules.
  private final class ThreadedSubscriber: Subscriber, Sendable {
    typealias Input = TopicRecord
    typealias Failure = ClientError

    private let subscription = Mutex<RemoteSubscription?>(nil)
    private let inside = Atomic<Int>(0)
    private let requested = Atomic<Int>(0)
    private let next = Atomic<UInt64>(0)
    let count = Atomic<Int>(0)
    let violations = Atomic<Int>(0)
    /// Signals after a cancel() that has returned.
    let late = Atomic<Int>(0)
    private let isCancelled = Atomic<Bool>(false)

    func receive(subscription: any Subscription) {
      self.subscription.withLock { $0 = subscription as? RemoteSubscription }
    }

    func receive(_ record: TopicRecord) -> Subscribers.Demand {
      signal {
        let count = count.add(1, ordering: .sequentiallyConsistent).newValue
        if count > requested.load(ordering: .sequentiallyConsistent) { violation() }
        if next.exchange(record.offset + 1, ordering: .relaxed) != record.offset { violation() }
      }
      return .none
    }

    func receive(completion: Subscribers.Completion<ClientError>) { signal {} }

    func request(_ count: Int) {
      requested.add(count, ordering: .sequentiallyConsistent)
      subscription.withLock { $0 }?.request(.max(count))
    }

    func cancel() {
      subscription.withLock { $0 }?.cancel()
      isCancelled.store(true, ordering: .sequentiallyConsistent)
    }

    private func violation() { violations.add(1, ordering: .relaxed) }

    private func signal(_ body: () -> Void) {
      if isCancelled.load(ordering: .sequentiallyConsistent) { late.add(1, ordering: .relaxed) }
      if inside.add(1, ordering: .sequentiallyConsistent).newValue != 1 { violation() }
      body()
      inside.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  private let setting: LoopbackSetting

  init() async throws {
    setting = try await LoopbackSetting()
    try await setting.publish(2_000, to: "t")
  }

  /// Breaks the connection repeatedly until `body` returns.
  private func disturbing(
    _ phase: RuleScene.Phase, _ client: Client, _ body: @Sendable () async throws -> Void
  )
    async throws
  {
    guard phase == .reconnect else { return try await body() }
    let breaker = Task {
      while !Task.isCancelled {
        LoopbackSetting.breakOff(client)
        _ = try? await client.ping()
        try? await Task.sleep(for: .milliseconds(5))
      }
    }
    defer { breaker.cancel() }
    try await body()
    breaker.cancel()
    await breaker.value
  }

  @Test(arguments: RuleScene.Phase.allCases)
  func rule301RequestsComeFromAnywhere(_ phase: RuleScene.Phase) async throws {
    let client = try await setting.connect { $0.reconnect = .quick }
    let subscribers = (0..<4).map { _ in ThreadedSubscriber() }
    for subscriber in subscribers { client.topic("t", from: .earliest, lag: .fail).subscribe(subscriber) }
    try await disturbing(phase, client) {
      await withTaskGroup { group in
        for subscriber in subscribers {
          for _ in 0..<3 {
            group.addTask {
              for _ in 0..<500 {
                subscriber.request(1)
                await Task.yield()
              }
            }
          }
        }
      }
    }
    // The connection is no longer broken: the requested values arrive, and no more.
    while subscribers.contains(where: { $0.count.load(ordering: .relaxed) < 1_500 }) { await Task.yield() }
    _ = try await client.ping()
    for subscriber in subscribers {
      #expect(subscriber.count.load(ordering: .relaxed) == 1_500)
      #expect(subscriber.violations.load(ordering: .relaxed) == 0)
    }
  }

  @Test(arguments: RuleScene.Phase.allCases)
  func rule305CancelIsHeardFromAnywhereAtAnyMoment(_ phase: RuleScene.Phase) async throws {
    let client = try await setting.connect { $0.reconnect = .quick }
    try await disturbing(phase, client) {
      for round in 0..<50 {
        let subscriber = ThreadedSubscriber()
        client.topic("t", from: .earliest, lag: .fail).subscribe(subscriber)
        await withTaskGroup { group in
          group.addTask {
            for _ in 0..<200 { subscriber.request(5) }
          }
          for _ in 0..<2 {
            group.addTask {
              for _ in 0..<round * 3 { await Task.yield() }
              subscriber.cancel()
            }
          }
        }
        // One call may have been in progress when cancel() returned.
        #expect(subscriber.late.load(ordering: .relaxed) <= 1)
        #expect(subscriber.violations.load(ordering: .relaxed) == 0)
        let count = subscriber.count.load(ordering: .relaxed)
        // The request follows the cancellation on the same connection; or it is sent on another one, after the broker has closed the former.
        if phase == .steady {
          #expect(try await client.topicInfo("t").subscriptions.isEmpty)
        } else {
          try await setting.none(on: "t", client)
        }
        #expect(subscriber.count.load(ordering: .relaxed) - count <= 1)
      }
    }
  }
}
