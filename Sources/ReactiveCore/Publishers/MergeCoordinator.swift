import Synchronization

/// Merges the streams of a fixed number of upstreams: the subscription of all the `Merge` publishers.
///
/// Requests one value at a time from each upstream, unless downstream has unlimited demand. A value that comes while there is no
/// demand, or while another is being delivered, waits in a queue. A failure of one upstream cancels the others.
@usableFromInline
final class MergeCoordinator<Input, Failure, Downstream: Subscriber>: Subscription, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  /// The state of one upstream.
  @usableFromInline
  struct Source {
    var subscription: (any Subscription)?
    var isConnected = false
    var hasUnlimitedDemand = false
    var isWaiting = false  // a value of its limited demand is in the queue

    init() {}
  }

  @usableFromInline let gate = DrainGate()
  /// Whether demand is unlimited, so that values need not be counted. Set by the holder of the gate, when nothing
  /// waits.
  @usableFromInline let isUnlimited = Atomic<Bool>(false)

  /// Used by the caller that holds the gate.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?

  private let lock = Lock()
  // Guarded by the lock.
  private var sources: ContiguousArray<Source>
  private var remaining: Int
  private var demand = Subscribers.Demand.none
  private var queue = RingBuffer<(value: Input, index: Int)>()
  private var terminal: Subscribers.Completion<Failure>?
  private var isOver = false

  /// - Parameter count: How many upstreams there are.
  @usableFromInline
  init(downstream: Downstream, count: Int) {
    unsafe self.downstream = downstream
    sources = ContiguousArray(repeating: Source(), count: count)
    remaining = count
  }

  /// Makes the subscriber of one upstream.
  @inlinable
  func side(_ index: Int, _ downstream: Downstream) -> MergeSide<Input, Failure, Downstream> {
    MergeSide(coordinator: self, index: index, downstream: downstream)
  }

  // From the upstreams.

  @usableFromInline
  func connect(_ subscription: any Subscription, from index: Int) {
    var request: Subscribers.Demand?
    lock.withLock {
      guard !isOver, terminal == nil, !sources[index].isConnected else { return }
      sources[index].isConnected = true
      sources[index].subscription = subscription
      sources[index].hasUnlimitedDemand = demand == .unlimited
      request = demand == .unlimited ? .unlimited : .max(1)
    }
    subscription.start(requesting: request)
  }

  @usableFromInline
  func receiveCounting(_ input: Input, from index: Int) -> Subscribers.Demand {
    var isHolder = false
    var isCounted = false
    var replaced: Input?
    lock.withLock {
      guard !isOver, terminal == nil else { return }
      isCounted = !sources[index].hasUnlimitedDemand
      if demand > .none, queue.isEmpty, gate.enter() {
        demand -= 1
        isHolder = true
      } else if isCounted, sources[index].isWaiting {
        // A value without demand: keep the latest.
        replaced = queue.replace(with: (input, index)) { $0.index == index }?.value
      } else {
        sources[index].isWaiting = isCounted
        queue.append((input, index))
      }
    }
    withExtendedLifetime(replaced) {}
    guard isHolder else {
      if gate.requestDrain() { drain() }
      return .none
    }
    unsafe add(downstream.unsafelyUnwrapped.receive(input))
    if !gate.leave() { drain() }
    return isCounted ? .max(1) : .none
  }

  @usableFromInline
  func complete(_ completion: Subscribers.Completion<Failure>, from index: Int) {
    var cancelled = ContiguousArray<Source>()
    var finished: (any Subscription)?
    let isLast = lock.withLock {
      guard !isOver, terminal == nil else { return false }
      switch completion {
      case .finished:
        swap(&finished, &sources[index].subscription)
        remaining -= 1
        if remaining > 0 { return false }
      case .failure:
        cancelled = sources
        for index in sources.indices { sources[index].subscription = nil }
      }
      terminal = completion
      return true
    }
    for source in cancelled {
      source.subscription?.cancel()
    }
    if isLast, gate.requestDrain() { drain() }
  }

  // While holding the gate.

  private func add(_ more: Subscribers.Demand) {
    if more > .none {
      lock.withLock { demand += more }
    }
  }

  /// Delivers queued values within the demand, then the completion if it has arrived, then releases the gate.
  @usableFromInline
  func drain() {
    repeat {
      guard gate.beginPass() else { return unsafe downstream = nil }
      while let (value, index) = takeNext() {
        unsafe add(downstream.unsafelyUnwrapped.receive(value))
        guard !gate.isEnded else { return unsafe downstream = nil }
        requestNext(index)
      }
      if let completion = takeEnd() { return finish(completion) }
    } while !gate.leave()
  }

  private func takeNext() -> (value: Input, index: Int)? {
    lock.withLock {
      guard demand > .none, let next = queue.popFirst() else {
        isUnlimited.store(demand == .unlimited && queue.isEmpty, ordering: .releasing)
        return nil
      }
      demand -= 1
      sources[next.index].isWaiting = false
      return next
    }
  }

  /// Asks the upstream whose value has been delivered for another.
  private func requestNext(_ index: Int) {
    let subscription: (any Subscription)? = lock.withLock {
      isOver || sources[index].hasUnlimitedDemand ? nil : sources[index].subscription
    }
    subscription?.request(.max(1))
  }

  private func takeEnd() -> Subscribers.Completion<Failure>? {
    lock.withLock {
      // Queued values have no demand. A failure does not wait for demand.
      guard let terminal else { return nil }
      if case .finished = terminal, !queue.isEmpty { return nil }
      return terminal
    }
  }

  private func finish(_ completion: Subscribers.Completion<Failure>) {
    let target = unsafe downstream
    unsafe downstream = nil
    if case .holder = gate.end() {
      _ = takeSources()
      target?.receive(completion: completion)
    }
  }

  // From downstream.

  @usableFromInline
  func start() {
    let isEmpty = lock.withLock {
      if remaining > 0 || isOver { return false }
      terminal = .finished
      return true
    }
    if isEmpty, gate.requestDrain() { drain() }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    var unbounded: [any Subscription] = []
    lock.withLock {
      guard !isOver else { return }
      self.demand += demand
      guard self.demand == .unlimited else { return }
      for index in sources.indices where !sources[index].hasUnlimitedDemand {
        sources[index].hasUnlimitedDemand = true
        if let subscription = sources[index].subscription { unbounded.append(subscription) }
      }
    }
    if gate.requestDrain() { drain() }
    for subscription in unbounded {
      subscription.request(.unlimited)
    }
  }

  @usableFromInline
  func cancel() {
    let releaser = gate.end()
    for source in takeSources() {
      source.subscription?.cancel()
    }
    if case .caller = releaser { unsafe downstream = nil }
  }

  /// Releases everything and returns the upstreams.
  private func takeSources() -> ContiguousArray<Source> {
    var sources = ContiguousArray<Source>()
    var queue = RingBuffer<(value: Input, index: Int)>()
    lock.withLock {
      isOver = true
      swap(&queue, &self.queue)
      swap(&sources, &self.sources)
    }
    return sources
  }

  @usableFromInline var description: String { "Merge" }
}
