/// The values of up to four upstreams that wait for their counterparts.
@usableFromInline
struct ZipQueues<A, B, C, D> {
  @usableFromInline var a = RingBuffer<A>()
  @usableFromInline var b = RingBuffer<B>()
  @usableFromInline var c = RingBuffer<C>()
  @usableFromInline var d = RingBuffer<D>()
  /// A bit for each queue that is not empty.
  @usableFromInline var filled: UInt8 = 0

  @inlinable init() {}

  @inlinable
  mutating func append(_ entry: OneOfFour<A, B, C, D>) {
    switch entry {
    case .a(let value):
      a.append(value)
      filled |= 1
    case .b(let value):
      b.append(value)
      filled |= 2
    case .c(let value):
      c.append(value)
      filled |= 4
    case .d(let value):
      d.append(value)
      filled |= 8
    }
  }

  @inlinable mutating func takeA() -> A { Self.take(&a, &filled, 1) }
  @inlinable mutating func takeB() -> B { Self.take(&b, &filled, 2) }
  @inlinable mutating func takeC() -> C { Self.take(&c, &filled, 4) }
  @inlinable mutating func takeD() -> D { Self.take(&d, &filled, 8) }

  @inlinable
  static func take<Value>(_ queue: inout RingBuffer<Value>, _ filled: inout UInt8, _ bit: UInt8) -> Value {
    let value = queue.popFirst()
    if queue.isEmpty { filled &= ~bit }
    return unsafe value.unsafelyUnwrapped
  }
}

/// Combines the first values of all upstreams, then the second, and so on: the subscription of all the `Zip` publishers.
///
/// A request goes to all upstreams. Demand that downstream returns for a value is requested from all other upstreams, and
/// returned to the upstream whose value completed the combination. Requests are made without the gate, so that upstreams
/// that deliver at once get their values through.
@usableFromInline
final class ZipCoordinator<A, B, C, D, Failure, Downstream: Subscriber>: CombiningCoordinator, OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline typealias Entry = OneOfFour<A, B, C, D>
  @usableFromInline typealias Queues = ZipQueues<A, B, C, D>
  @usableFromInline typealias Output = Downstream.Input

  @inlinable static var name: StaticString { "Zip" }

  @usableFromInline let take: (inout Queues) -> Output
  /// A bit for each upstream.
  @usableFromInline let all: UInt8

  /// Closed until downstream has its subscription.
  @usableFromInline let gate = DrainGate(isBusy: true)
  /// Used by the caller that holds the gate.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var queues = Queues()
  @usableFromInline @exclusivity(unchecked) var subscriptions: ContiguousArray<(any Subscription)?>
  @usableFromInline @exclusivity(unchecked) var connected: UInt8 = 0
  @usableFromInline @exclusivity(unchecked) var finished: UInt8 = 0
  @usableFromInline @exclusivity(unchecked) var terminal: Subscribers.Completion<Failure>?
  @usableFromInline @exclusivity(unchecked) var isOver = false
  /// Demand that hasn't been passed on yet.
  @usableFromInline @exclusivity(unchecked) var pending = Subscribers.Demand.none

  /// - Parameters:
  ///   - count: How many upstreams there are.
  ///   - take: Takes the first value of each queue that is used.
  @inlinable
  init(downstream: Downstream, count: Int, take: @escaping (inout Queues) -> Output) {
    unsafe self.downstream = downstream
    self.take = take
    all = (1 << count) - 1
    unsafe subscriptions = ContiguousArray(repeating: nil, count: count)
  }

  @inlinable
  func side<Input>(
    _ index: Int, _ downstream: Downstream, _ wrap: @escaping (Input) -> Entry
  ) -> CombiningSide<Input, Failure, ZipCoordinator> {
    CombiningSide(self, index: index, downstream: downstream, wrap: wrap)
  }

  // From the upstreams.

  @usableFromInline
  func connect(_ subscription: any Subscription, from index: Int) {
    var isAccepted = false
    let isReady = lock.withLock {
      let bit: UInt8 = 1 << UInt8(index)
      guard unsafe !isOver, unsafe connected & bit == 0 else { return false }
      isAccepted = true
      unsafe connected |= bit
      unsafe subscriptions[index] = subscription
      return unsafe connected == all
    }
    if !isAccepted { return subscription.cancel() }
    if isReady {
      unsafe downstream?.receive(subscription: self)
      _ = run(adding: .none, sender: nil)
    }
  }

  @inlinable
  func receive(_ entry: Entry, from index: Int, for downstream: Downstream) -> Subscribers.Demand {
    var output: Output?
    var isLast = false
    let isReady = lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil else { return false }
      unsafe queues.append(entry)
      guard unsafe queues.filled == all else { return false }
      if gate.enter() {
        output = lockedTake()
        isLast = unsafe terminal != nil
      }
      return true
    }
    guard isReady else { return .none }
    var more = Subscribers.Demand.none
    if let output {
      more = downstream.receive(output)
      // If values became ready meanwhile, drainRequested is set.
      if more == .none, !isLast, gate.leave() { return .none }
    } else if !gate.requestDrain() {
      return .none
    }
    return run(adding: more, sender: index)
  }

  @usableFromInline
  func complete(_ completion: Subscribers.Completion<Failure>, from index: Int) {
    var released: (any Subscription)?
    let isEnding = lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil else { return false }
      if case .finished = completion {
        let bit: UInt8 = 1 << UInt8(index)
        unsafe finished |= bit
        unsafe swap(&released, &subscriptions[index])
        if unsafe queues.filled & bit != 0 { return false }
      }
      unsafe terminal = completion
      return true
    }
    if isEnding, gate.requestDrain() { _ = run(adding: .none, sender: nil) }
  }

  // While holding the gate.

  /// Takes the next combination, if there is one. Called with the lock held.
  @inlinable
  func lockedTake() -> Output? {
    guard unsafe queues.filled == all else { return nil }
    let output = unsafe take(&queues)
    if unsafe finished & ~queues.filled != 0, unsafe terminal == nil { unsafe terminal = .finished }
    return output
  }

  /// Delivers the combinations that are ready, or the completion, gives up the gate, and passes on the demand.
  ///
  /// - Parameters:
  ///   - asked: What downstream has asked for by what it returned.
  ///   - sender: The upstream whose value is being received, if any.
  /// - Returns: How many more values are wanted from the sender.
  @inlinable
  func run(adding asked: Subscribers.Demand, sender: Int?) -> Subscribers.Demand {
    var asked = asked
    repeat {
      guard gate.beginPass() else {
        unsafe downstream = nil
        return .none
      }
      while true {
        var isEnding = false
        let next = lock.withLock {
          unsafe asked += pending
          unsafe pending = .none
          let next = lockedTake()
          isEnding = unsafe next == nil && terminal != nil
          return next
        }
        if isEnding {
          finish()
          return .none
        }
        guard let next else { break }
        unsafe asked += downstream.unsafelyUnwrapped.receive(next)
      }
    } while !gate.leave()
    if asked > .none { pass(asked, except: sender) }
    return asked
  }

  @usableFromInline
  func pass(_ demand: Subscribers.Demand, except sender: Int?) {
    let subscriptions = lock.withLock { unsafe self.subscriptions }
    for index in subscriptions.indices where index != sender {
      subscriptions[index]?.request(demand)
    }
  }

  @usableFromInline
  func finish() {
    let target = unsafe downstream
    unsafe downstream = nil
    guard case .holder = gate.end() else { return }
    let completion = lock.withLock { unsafe terminal }
    for subscription in takeAll() {
      subscription?.cancel()
    }
    if let completion { target?.receive(completion: completion) }
  }

  // From downstream.

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    lock.withLock {
      if unsafe !isOver { unsafe pending += demand }
    }
    if gate.requestDrain() { _ = run(adding: .none, sender: nil) }
  }

  @usableFromInline
  func cancel() {
    let releaser = gate.end()
    for subscription in takeAll() {
      subscription?.cancel()
    }
    if case .caller = releaser { unsafe downstream = nil }
  }

  /// Releases everything and returns the subscriptions.
  private func takeAll() -> ContiguousArray<(any Subscription)?> {
    var subscriptions = ContiguousArray<(any Subscription)?>()
    var queues = Queues()
    lock.withLock {
      unsafe isOver = true
      unsafe swap(&queues, &self.queues)
      unsafe swap(&subscriptions, &self.subscriptions)
    }
    return subscriptions
  }

  @usableFromInline var description: String { "Zip" }
}
