/// The latest values of up to four upstreams.
@usableFromInline
struct LatestValues<A, B, C, D> {
  @usableFromInline var a: A?
  @usableFromInline var b: B?
  @usableFromInline var c: C?
  @usableFromInline var d: D?
  /// A bit for each value there is.
  @usableFromInline var present: UInt8 = 0

  @inlinable init() {}

  @inlinable
  mutating func store(_ entry: OneOfFour<A, B, C, D>) {
    switch entry {
    case .a(let value):
      a = value
      present |= 1
    case .b(let value):
      b = value
      present |= 2
    case .c(let value):
      c = value
      present |= 4
    case .d(let value):
      d = value
      present |= 8
    }
  }
}

/// Combines each value with the latest of the other upstreams: the subscription of all the `CombineLatest` publishers.
///
/// A request goes to all upstreams; one that hands over its subscription later is asked then for all that the others have been
/// asked for. A value that arrives without demand replaces the latest one and delivers nothing. One that comes while another
/// is being delivered is dealt with after that. Demand that downstream returns for a value is requested from all other
/// upstreams, and returned to the upstream of the value.
@usableFromInline
final class CombineLatestCoordinator<A, B, C, D, Failure, Downstream: Subscriber>: CombiningCoordinator,
  OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline typealias Entry = OneOfFour<A, B, C, D>
  @usableFromInline typealias Values = LatestValues<A, B, C, D>

  @inlinable static var name: StaticString { "CombineLatest" }

  @usableFromInline let combine: (Values) -> Downstream.Input
  /// A bit for each upstream.
  @usableFromInline let all: UInt8

  @usableFromInline let demand = DemandCount()
  @usableFromInline let gate = DrainGate()
  // Used by the caller that holds the gate.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?
  @usableFromInline @exclusivity(unchecked) var values = Values()

  private let lock = Lock()
  // Guarded by the lock.
  private var queue = RingBuffer<(entry: Entry, index: Int)>()
  private var subscriptions: ContiguousArray<(any Subscription)?>
  private var connected: UInt8 = 0
  /// Values of each upstream so far, including upstreams that are still to connect.
  private var requested = Subscribers.Demand.none
  private var remaining: Int
  private var terminal: Subscribers.Completion<Failure>?
  private var isKnown = false  // downstream has its subscription
  private var isOver = false

  /// - Parameters:
  ///   - count: How many upstreams there are.
  ///   - combine: Combines the values in use, all of them present.
  @usableFromInline
  init(downstream: Downstream, count: Int, combine: @escaping (Values) -> Downstream.Input) {
    unsafe self.downstream = downstream
    self.combine = combine
    all = (1 << count) - 1
    remaining = count
    subscriptions = ContiguousArray(repeating: nil, count: count)
  }

  @inlinable
  func side<Input>(
    _ index: Int, _ downstream: Downstream, _ wrap: @escaping (Input) -> Entry
  ) -> CombiningSide<Input, Failure, CombineLatestCoordinator> {
    CombiningSide(self, index: index, downstream: downstream, wrap: wrap)
  }

  /// Gives downstream its subscription, when all upstreams have been subscribed to.
  @usableFromInline
  func start(_ downstream: Downstream) {
    downstream.receive(subscription: self)
    let isEnding = lock.withLock {
      isKnown = true
      return terminal != nil
    }
    if isEnding, gate.requestDrain() { _ = drain(sender: nil) }
  }

  // From the upstreams.

  @usableFromInline
  func connect(_ subscription: any Subscription, from index: Int) {
    // Under the lock, so that a request either finds the subscription or is counted here.
    var request: Subscribers.Demand?
    lock.withLock {
      let bit: UInt8 = 1 << UInt8(index)
      guard !isOver, terminal == nil, connected & bit == 0 else { return }
      connected |= bit
      subscriptions[index] = subscription
      request = requested
    }
    subscription.start(requesting: request)
  }

  @inlinable
  func receive(_ entry: Entry, from index: Int, for downstream: Downstream) -> Subscribers.Demand {
    guard gate.enter() else { return wait(entry, from: index) }
    var more = deliver(entry, to: downstream)
    if !gate.leave() { more += drain(sender: index) }
    if more > .none { pass(more, except: index) }
    return more
  }

  /// Queues a value for the caller that holds the gate.
  @usableFromInline
  func wait(_ entry: Entry, from index: Int) -> Subscribers.Demand {
    let isOpen = lock.withLock {
      guard !isOver, terminal == nil else { return false }
      queue.append((entry, index))
      return true
    }
    guard isOpen, gate.requestDrain() else { return .none }
    let more = drain(sender: index)
    if more > .none { pass(more, except: index) }
    return more
  }

  @usableFromInline
  func complete(_ completion: Subscribers.Completion<Failure>, from index: Int) {
    var released: (any Subscription)?
    var cancelled = ContiguousArray<(any Subscription)?>()
    let isEnding = lock.withLock {
      guard !isOver, terminal == nil else { return false }
      swap(&released, &subscriptions[index])
      remaining -= 1
      if case .failure = completion {
        swap(&cancelled, &subscriptions)
      } else if remaining > 0 {
        return false
      }
      terminal = completion
      return isKnown
    }
    for subscription in cancelled {
      subscription?.cancel()
    }
    if isEnding, gate.requestDrain() { _ = drain(sender: nil) }
  }

  // While holding the gate.

  /// - Returns: How many more values downstream wants.
  @inlinable
  func deliver(_ entry: Entry, to downstream: Downstream) -> Subscribers.Demand {
    unsafe values.store(entry)
    guard unsafe values.present == all, demand.take() else { return .none }
    let more = unsafe downstream.receive(combine(values))
    demand.add(more)
    return more
  }

  /// Delivers the queued values, then the completion if it has come, then gives up the gate.
  ///
  /// - Returns: How many more values downstream wants. They have not been asked for.
  @usableFromInline
  func drain(sender: Int?) -> Subscribers.Demand {
    var more = Subscribers.Demand.none
    repeat {
      while true {
        guard gate.beginPass() else {
          release()
          return .none
        }
        guard let next = lock.withLock({ queue.popFirst() }) else { break }
        unsafe more += deliver(next.entry, to: downstream.unsafelyUnwrapped)
      }
      if let terminal = lock.withLock({ isKnown && queue.isEmpty ? terminal : nil }) {
        finish(terminal)
        return .none
      }
    } while !gate.leave()
    if sender == nil, more > .none { pass(more, except: nil) }
    return more
  }

  private func finish(_ completion: Subscribers.Completion<Failure>) {
    let target = unsafe downstream
    release()
    if case .holder = gate.end() {
      _ = takeAll()
      target?.receive(completion: completion)
    }
  }

  private func release() {
    unsafe downstream = nil
    unsafe values = Values()
  }

  @usableFromInline
  func pass(_ demand: Subscribers.Demand, except sender: Int?) {
    let subscriptions = lock.withLock {
      requested += demand
      return self.subscriptions
    }
    for index in subscriptions.indices where index != sender {
      subscriptions[index]?.request(demand)
    }
  }

  // From downstream.

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    self.demand.add(demand)
    pass(demand, except: nil)
  }

  @usableFromInline
  func cancel() {
    let releaser = gate.end()
    for subscription in takeAll() {
      subscription?.cancel()
    }
    if case .caller = releaser { release() }
  }

  /// Releases everything and returns the subscriptions.
  private func takeAll() -> ContiguousArray<(any Subscription)?> {
    var subscriptions = ContiguousArray<(any Subscription)?>()
    var queue = RingBuffer<(entry: Entry, index: Int)>()
    lock.withLock {
      isOver = true
      swap(&queue, &self.queue)
      swap(&subscriptions, &self.subscriptions)
    }
    return subscriptions
  }

  @usableFromInline var description: String { "CombineLatest" }

  @usableFromInline var customMirror: Mirror {
    let subscriptions = lock.withLock { self.subscriptions }
    return mirror(("upstreamSubscriptions", Array(subscriptions)), ("demand", demand.value))
  }
}
