import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceClient

/// A member of a group that processes records, more or less reliably.
// @unchecked: a simulation runs on one thread at a time.
final class GroupWorker: Subscriber, @unchecked Sendable {
  typealias Input = Delivery
  typealias Failure = ClientError

  let number: Int
  let loop: SimulatedLoop
  private let plan: GroupPlan
  private let oracle: GroupOracle
  private var random: SeededRandom
  /// Apart, so that stories stay the same.
  private var delays: SeededRandom
  private(set) var client: Client?
  private var subscription: (any Subscription)?
  private var requested: UInt64 = 0
  private var received: UInt64 = 0
  /// Deliveries without a response yet.
  private var held: [Delivery] = []
  private(set) var isGone = false
  private(set) var completion: Subscribers.Completion<ClientError>?
  private var isSettling = false

  init(_ number: Int, _ plan: GroupPlan, _ oracle: GroupOracle, loop: SimulatedLoop) {
    self.number = number
    self.plan = plan
    self.oracle = oracle
    self.loop = loop
    random = SeededRandom(seed: plan.seed &* 0x9e37_79b9 &+ UInt64(number))
    delays = SeededRandom(seed: plan.seed &* 0x517c_c1b7 &+ UInt64(number))
  }

  func connect(to address: SocketAddress, _ network: any Network) {
    var options = ClientOptions()
    options.name = "worker \(number)"
    options.keepalive = .milliseconds(500)
    options.connectTimeout = .seconds(2)
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(1)
    policy.maximumDelay = .milliseconds(200)
    policy.includesFirst = true
    options.reconnect = policy
    options.seed = random.next()
    Client.connect(to: [address], options: options, network: network, loop: loop) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let client):
        if isGone { return client.close() }
        self.client = client
        join()
      case .failure(let error): oracle.fail("worker \(number) can't connect: \(error)")
      }
    }
  }

  private func join() {
    requested = 0
    received = 0
    completion = nil
    client?.group(
      GroupPlan.group, of: GroupPlan.topic, options: plan.options, from: .earliest,
      prefetch: random.oneIn(3) ? .keepFull(random.next(in: 1...10)) : .byRequest
    ).subscribe(self)
  }

  // MARK: Subscriber

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    ask()
  }

  func receive(_ delivery: Delivery) -> Subscribers.Demand {
    received += 1
    oracle.check(
      received <= requested, "worker \(number) got \(received) records where it asked for \(requested)")
    oracle.received(
      place(delivery), count: delivery.count, key: delivery.record.keyString, by: number, at: loop.now)
    work(on: delivery)
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    self.completion = completion
    subscription = nil
    guard case .failure(let error) = completion, !isGone else { return }
    oracle.check(error.code == .closed, "worker \(number) ended with \(error)")
  }

  private func place(_ delivery: Delivery) -> GroupOracle.Place {
    GroupOracle.Place(epoch: delivery.epoch, offset: delivery.record.offset)
  }

  // MARK: Work

  private func work(on delivery: Delivery) {
    guard plan.isExplicit else { return ask(soon: true) }
    if isSettling { return finish(delivery) }
    switch random.next(below: 20) {
    case 0..<8: finish(delivery)
    case 8..<13:
      held.append(delivery)
      later(within: .milliseconds(300)) { $0.finishHeld() }
    case 13:
      delivery.extend()
      held.append(delivery)
      later(within: .milliseconds(500)) { $0.finishHeld() }
    case 14..<16:
      retry(delivery)
    case 16 where plan.options.deadLetters != nil:
      delivery.reject()
      ask(soon: true)
    case 17:
      // Never answered.
      held.append(delivery)
    default: finish(delivery)
    }
  }

  private func retry(_ delivery: Delivery) {
    let delay: Duration? = delays.oneIn(2) ? delays.next(in: .zero ... .milliseconds(500)) : nil
    oracle.retried(
      place(delivery), count: delivery.count, after: delay ?? plan.backoff(after: delivery.count),
      at: loop.now)
    delivery.retry(after: plan.hidesRetries ? .zero : delay)
    ask(soon: true)
  }

  private func finish(_ delivery: Delivery) {
    oracle.acknowledged(place(delivery))
    delivery.acknowledge()
    ask(soon: true)
  }

  private func finishHeld() {
    guard let delivery = held.popLast() else { return }
    finish(delivery)
  }

  private func ask(soon: Bool = false) {
    guard subscription != nil, !isGone, requested != .max else { return }
    if soon { return later(within: .milliseconds(20)) { $0.ask() } }
    if random.oneIn(20) || isSettling {
      requested = .max
      subscription?.request(.unlimited)
    } else if requested < received + 8 {
      let count = random.next(in: 1...4)
      requested += UInt64(count)
      subscription?.request(.max(count))
    }
  }

  private func later(within time: Duration, _ body: @escaping (GroupWorker) -> Void) {
    let delay = isSettling ? .milliseconds(1) : random.next(in: .zero...time)
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, !isGone else { return }
      body(self)
    }
  }

  // MARK: Ends

  /// Its process was killed.
  func kill() {
    isGone = true
    held = []
    client = nil
    subscription = nil
  }

  /// Leaves the group, and rejoins.
  func leaveAndReturn() {
    guard let subscription, !isGone else { return }
    held = []
    subscription.cancel()
    self.subscription = nil
    later(within: .milliseconds(100)) { $0.join() }
  }

  /// Processes everything reliably after this call.
  func settle() {
    isSettling = true
    loop.perform {
      while !held.isEmpty { finishHeld() }
      ask()
    }
  }

  func close() {
    isGone = true
    client?.close()
    client = nil
    held = []
  }
}
