import Synchronization

extension Publishers {
  /// Makes a publisher of each value and passes on what all of them deliver.
  public struct FlatMap<NewPublisher: Publisher, Upstream: Publisher>: Publisher
  where NewPublisher.Failure == Upstream.Failure {
    public typealias Output = NewPublisher.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// How many publishers may be under way at a time.
    public let maxPublishers: Subscribers.Demand
    /// Makes a publisher of a value.
    public let transform: (Upstream.Output) -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, maxPublishers: Subscribers.Demand,
      transform: @escaping (Upstream.Output) -> NewPublisher
    ) {
      self.upstream = upstream
      self.maxPublishers = maxPublishers
      self.transform = transform
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = FlatMapSubscriber<Upstream.Output, Failure, NewPublisher, S>(
        maxPublishers: maxPublishers, transform: transform, downstream: subscriber)
      subscriber.receive(subscription: inner)
      upstream.receive(subscriber: inner)
    }
  }
}

/// Merges the streams of the publishers that are under way.
///
/// Each child is asked for one value at a time, unless downstream has asked for everything. A value that comes while there is no
/// demand, or while another is being delivered, waits in a queue; whoever is delivering works it off. So downstream gets one
/// value at a time and the stack does not grow.
@usableFromInline
final class FlatMapSubscriber<Input, Failure, Child: Publisher, Downstream: Subscriber>: Subscriber,
  Subscription, CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
where Child.Failure == Failure, Downstream.Input == Child.Output, Downstream.Failure == Failure {
  @usableFromInline typealias Output = Child.Output

  @usableFromInline let maxPublishers: Subscribers.Demand
  @usableFromInline let transform: (Input) -> Child

  /// Whether values from the outer stream are wanted. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(true)

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?
  @usableFromInline @exclusivity(unchecked) var outer: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var isConnected = false
  @usableFromInline @exclusivity(unchecked) var isOuterDone = false
  @usableFromInline @exclusivity(unchecked) var demand = Subscribers.Demand.none
  @usableFromInline @exclusivity(unchecked) var children = ChildTable()
  @usableFromInline @exclusivity(unchecked) var queue = RingBuffer<(value: Output, key: ChildKey)>()
  @usableFromInline @exclusivity(unchecked) var isDelivering = false

  @inlinable
  init(maxPublishers: Subscribers.Demand, transform: @escaping (Input) -> Child, downstream: Downstream) {
    self.maxPublishers = maxPublishers
    self.transform = transform
    self.downstream = downstream
  }

  // The outer stream.

  @inlinable
  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      guard !isConnected, downstream != nil else { return false }
      isConnected = true
      outer = subscription
      return true
    }
    if isAccepted {
      subscription.request(maxPublishers)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard isOpen.load(ordering: .acquiring) else { return .none }
    let child = transform(input)
    let key: ChildKey? = lock.withLock {
      downstream != nil ? children.add() : nil
    }
    if let key {
      child.receive(subscriber: FlatMapChildSubscriber(parent: self, key: key))
    }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished:
      var outer: (any Subscription)?
      var target: Downstream?
      lock.withLock {
        isOuterDone = true
        isOpen.store(false, ordering: .releasing)
        swap(&outer, &self.outer)
        target = lockedTakeIfDone()
      }
      target?.receive(completion: .finished)
    case .failure:
      end(with: completion, cancellingOuter: false)
    }
  }

  // The children.

  @inlinable
  func receive(subscription: any Subscription, from key: ChildKey) {
    var request = Subscribers.Demand.none
    lock.withLock {
      guard downstream != nil,
        children.accept(subscription, for: key, isUnlimited: demand == .unlimited)
      else { return }
      request = demand == .unlimited ? .unlimited : .max(1)
    }
    if request != .none {
      subscription.request(request)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ value: Output, from key: ChildKey) -> Subscribers.Demand {
    var target: Downstream?
    var isCounted = true
    lock.withLock {
      guard let downstream, children.contains(key) else { return }
      if demand == .none || isDelivering || !queue.isEmpty {
        queue.append((value, key))
        return
      }
      demand -= 1
      isCounted = !children.hasUnlimitedDemand(key)
      isDelivering = true
      target = downstream
    }
    guard let target else { return .none }
    let more = target.receive(value)
    drain(adding: more)
    return isCounted ? .max(1) : .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>, from key: ChildKey) {
    // The subscription is let go of outside the lock.
    withUnsafeTemporaryAllocation(of: (any Subscription).self, capacity: 1) { memory in
      let subscription = memory.baseAddress.unsafelyUnwrapped
      var target: Downstream?
      var isReleasable = false
      let isCurrent = lock.withLock {
        guard downstream != nil, children.contains(key) else { return false }
        isReleasable = children.remove(key, to: subscription)
        if case .finished = completion {
          target = lockedTakeIfDone()
        }
        return true
      }
      guard isCurrent else { return }
      if case .failure = completion {
        end(with: completion, cancellingOuter: true)
      } else if let target {
        target.receive(completion: .finished)
      } else if maxPublishers != .unlimited {
        requestAnother()
      }
      if isReleasable {
        subscription.deinitialize(count: 1)
      }
    }
  }

  @usableFromInline
  func requestAnother() {
    let outer: (any Subscription)? = lock.withLock { self.outer }
    outer?.request(.max(1))
  }

  // Delivering.

  /// Delivers what waits and is asked for, then stops delivering. Called by the one that delivers.
  @inlinable
  func drain(adding more: Subscribers.Demand) {
    var target: Downstream?
    let isDone = lock.withLock {
      demand += more
      guard demand == .none || queue.isEmpty || downstream == nil else { return false }
      isDelivering = false
      target = lockedTakeIfDone()
      return true
    }
    if !isDone {
      drainQueue()
    } else if let target {
      target.receive(completion: .finished)
    }
  }

  @inlinable
  func drainQueue() {
    var more = Subscribers.Demand.none
    while true {
      var next: (value: Output, key: ChildKey)?
      var target: Downstream?
      var isCounted = false
      lock.withLock {
        demand += more
        if demand > .none, downstream != nil, let item = queue.popFirst() {
          demand -= 1
          next = item
          target = downstream
          isCounted = children.contains(item.key) && !children.hasUnlimitedDemand(item.key)
        } else {
          isDelivering = false
          target = lockedTakeIfDone()
        }
      }
      guard let target else { return }
      guard let next else { return target.receive(completion: .finished) }
      more = target.receive(next.value)
      if isCounted { requestAnother(from: next.key) }
    }
  }

  /// Asks a child for one more value, unless it has ended.
  @usableFromInline
  func requestAnother(from key: ChildKey) {
    let child = lock.withLock { children.countedSubscription(key) }
    child?.request(.max(1))
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    var unbounded: [any Subscription] = []
    let mustDrain = lock.withLock {
      guard downstream != nil else { return false }
      self.demand += demand
      if self.demand == .unlimited {
        unbounded = children.makeUnlimited()
      }
      defer { isDelivering = true }
      return !isDelivering
    }
    if mustDrain {
      drain(adding: .none)
    }
    for subscription in unbounded {
      subscription.request(.unlimited)
    }
  }

  /// Takes downstream out, to be finished, if upstream and all children have finished and nothing waits. Called with the lock held.
  @inlinable
  func lockedTakeIfDone() -> Downstream? {
    guard isOuterDone, children.count == 0, queue.isEmpty, !isDelivering else { return nil }
    return downstream.take()
  }

  // Ending.

  @inlinable
  func end(with completion: Subscribers.Completion<Failure>, cancellingOuter: Bool) {
    let (target, outer, children) = take()
    guard let target else { return }
    if cancellingOuter { outer?.cancel() }
    for child in children { child.cancel() }
    target.receive(completion: completion)
  }

  @inlinable
  func cancel() {
    let (_, outer, children) = take()
    for child in children { child.cancel() }
    outer?.cancel()
  }

  /// Ends it and returns what was held, to be released outside the lock.
  @inlinable
  func take() -> (Downstream?, (any Subscription)?, [any Subscription]) {
    var target: Downstream?
    var outer: (any Subscription)?
    var children: [any Subscription] = []
    var queue = RingBuffer<(value: Output, key: ChildKey)>()
    lock.withLock {
      isOpen.store(false, ordering: .releasing)
      swap(&target, &downstream)
      swap(&outer, &self.outer)
      children = self.children.removeAll()
      swap(&queue, &self.queue)
    }
    return (target, outer, children)
  }

  @usableFromInline var description: String { "FlatMap" }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

  @usableFromInline var playgroundDescription: Any { description }
}

/// What a child delivers to.
@usableFromInline
struct FlatMapChildSubscriber<OuterInput, Input, Failure, Child: Publisher, Downstream: Subscriber>:
  Subscriber,
  CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
where
  Child.Output == Input, Child.Failure == Failure, Downstream.Input == Input, Downstream.Failure == Failure
{
  @usableFromInline typealias Parent = FlatMapSubscriber<OuterInput, Failure, Child, Downstream>

  @usableFromInline let parent: Parent
  @usableFromInline let key: ChildKey
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(parent: Parent, key: ChildKey) {
    self.parent = parent
    self.key = key
  }

  @inlinable
  func receive(subscription: any Subscription) {
    parent.receive(subscription: subscription, from: key)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    parent.receive(input, from: key)
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    parent.receive(completion: completion, from: key)
  }

  @usableFromInline var description: String { "FlatMap" }

  @usableFromInline var customMirror: Mirror {
    Mirror(self, children: [("parentSubscription", parent.combineIdentifier)])
  }

  @usableFromInline var playgroundDescription: Any { description }
}

extension Publisher {
  /// Makes a publisher of each value and passes on what all of them deliver, in the order in which it comes.
  ///
  /// Finishes when upstream and all of them have finished; fails, and cancels the others and upstream, when one fails.
  ///
  /// - Parameters:
  ///   - maxPublishers: How many may be under way at a time; upstream is asked for as many values, and for one more when one finishes.
  ///   - transform: Makes a publisher of a value.
  @inlinable
  public func flatMap<P: Publisher>(
    maxPublishers: Subscribers.Demand = .unlimited, _ transform: @escaping (Output) -> P
  ) -> Publishers.FlatMap<P, Self> where P.Failure == Failure {
    Publishers.FlatMap(upstream: self, maxPublishers: maxPublishers, transform: transform)
  }
}
