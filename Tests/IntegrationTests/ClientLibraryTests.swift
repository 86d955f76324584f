import ReactiveCore
import SluiceClient
import SluiceWire
import TestSupport
import Testing

/// A program that uses the client library with a broker's process: however it releases a subscription, the broker removes it.
@Suite(.onItsOwnThread) struct ClientLibraryTests {
  enum LettingGo: CaseIterable {
    case cancel, release, closeClient, releaseClient
  }

  @Test(arguments: LettingGo.allCases)
  func aSubscriptionThatIsLetGoOfIsGoneFromTheBroker(how: LettingGo) async throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["a", "b", "c"], to: "t")
    var client: Client? = try await connect(to: broker)
    let received = Shared<[String]>([])
    var cancellable: AnyCancellable? = client!.topic("t").sink(
      receiveCompletion: { _ in },
      receiveValue: { record in received.update { $0.append(record.string) } })
    try eventually("the records") { received.value == ["a", "b", "c"] }
    #expect(try broker.show("t").summary.subscriptions == 1)

    switch how {
    case .cancel: cancellable!.cancel()
    case .release: cancellable = nil
    case .closeClient: client!.close()
    case .releaseClient: (client, cancellable) = (nil, nil)
    }
    try broker.waitForSubscriptions(0, on: "t")
    try broker.client().publishAll(["d"], to: "t")
    #expect(received.value == ["a", "b", "c"])
    withExtendedLifetime((client, cancellable)) {}
  }

  @Test func demandGoesFromTheSubscriberToTheBroker() async throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll((0..<100).map { "\($0)" }, to: "t")
    let client = try await connect(to: broker)
    let subscriber = Requesting()
    client.topic("t").subscribe(subscriber)
    subscriber.request(7)
    try eventually("seven records") { subscriber.received == 7 }
    let shown = try broker.show("t").subscriptions[0]
    #expect(shown.granted == 7)
    #expect(shown.sent == 7)
    subscriber.request(3)
    subscriber.request(2)
    try eventually("twelve records") { subscriber.received == 12 }
    #expect(try broker.show("t").subscriptions[0].granted == 12)
    client.close()
  }
}

/// Uses long timeouts, like the broker.
private func connect(to broker: BrokerProcess) async throws -> Client {
  var options = ClientOptions()
  options.keepalive = .zero
  options.connectTimeout = .seconds(600)
  return try await Client.connect(to: broker.address, options: options)
}

/// A subscriber that requests records on command.
private final class Requesting: Subscriber, Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private struct State: Sendable {
    var subscription: SendableSubscription?
    var early = 0
    var received = 0
  }
  private struct SendableSubscription: @unchecked Sendable {
    // The client's subscriptions may be used from any thread.
    let base: any Subscription
  }
  private let state = Shared(State())

  var received: Int { state.value.received }

  func request(_ count: Int) {
    let subscription = state.update { state in
      if state.subscription == nil { state.early += count }
      return state.subscription
    }
    subscription?.base.request(.max(count))
  }

  func receive(subscription: any Subscription) {
    let handle = SendableSubscription(base: subscription)
    let early = state.update { state in
      state.subscription = handle
      return state.early
    }
    if early > 0 { subscription.request(.max(early)) }
  }

  func receive(_ input: TopicRecord) -> Subscribers.Demand {
    state.update { $0.received += 1 }
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {}
}
