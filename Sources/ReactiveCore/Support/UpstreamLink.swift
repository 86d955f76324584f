import Synchronization

/// The upstream half of an operator that passes requests on as they come.
///
/// It is what the operator hands downstream as subscription. The operator's subscriber, which upstream holds, reads from it
/// whether the stream is still open, without a lock. Upstream is released at the end, whichever side it came from, so a
/// subscriber that keeps its subscription keeps nothing else alive.
///
///     downstream ──► link ──► upstream's subscription
///         ▲                          │
///         └──── operator ◄───────────┘
@usableFromInline
final class UpstreamLink<Downstream>: Subscription, OperatorPart {
  @usableFromInline
  enum Phase {
    @inlinable static var awaiting: UInt8 { 0 }
    @inlinable static var open: UInt8 { 1 }
    @inlinable static var ended: UInt8 { 2 }
  }

  @usableFromInline let phase = Atomic<UInt8>(Phase.awaiting)  // written under the lock
  private let lock = Lock()
  private var upstream: (any Subscription)?  // guarded by the lock
  private var pending = Subscribers.Demand.none  // guarded by the lock: asked for before there is upstream
  private var downstream: Downstream?  // guarded by the lock; for the mirror alone
  @usableFromInline let name: StaticString
  private let isReflecting: Bool
  private let acceptsNone: Bool

  /// A link that waits for its subscription.
  ///
  /// - Parameters:
  ///   - name: The description.
  ///   - downstream: The value for the mirror.
  ///   - isReflecting: Whether the mirror shows downstream; it is empty otherwise.
  ///   - acceptsNone: Whether a request for nothing passes, instead of stopping the program.
  @usableFromInline
  init(_ name: StaticString, downstream: Downstream, isReflecting: Bool = true, acceptsNone: Bool = false) {
    self.name = name
    self.downstream = isReflecting ? downstream : nil
    self.isReflecting = isReflecting
    self.acceptsNone = acceptsNone
  }

  /// Takes the subscription, unless there was one or the stream has ended, in which case it is cancelled.
  ///
  /// - Parameter demand: The operator's own request, in addition to earlier ones.
  @usableFromInline
  func connect(_ subscription: any Subscription, requesting demand: Subscribers.Demand = .none) -> Bool {
    var demand = demand
    let isAccepted = lock.withLock {
      guard phase.load(ordering: .relaxed) == Phase.awaiting else { return false }
      upstream = subscription
      demand += pending
      phase.store(Phase.open, ordering: .releasing)
      return true
    }
    subscription.start(requesting: isAccepted ? demand : nil)
    return isAccepted
  }

  /// Whether a value may be passed on. One that comes before the subscription is ignored.
  @inlinable @inline(__always)
  var isOpen: Bool {
    let phase = phase.load(ordering: .acquiring)
    if phase == Phase.open { return true }
    if phase == Phase.awaiting { Violation.valueBeforeSubscription.ignored(by: name) }
    return false
  }

  /// Ends the stream because upstream has completed. A completion that comes before the subscription is ignored.
  ///
  /// - Returns: Whether it was open, so that downstream must get the completion.
  @usableFromInline
  func complete() -> Bool {
    if phase.load(ordering: .acquiring) == Phase.awaiting {
      Violation.completionBeforeSubscription.ignored(by: name)
      return false
    }
    return end() != nil
  }

  /// Ends the stream because the operator has decided so, and cancels upstream.
  ///
  /// - Returns: Whether it was open, so that downstream must get the completion.
  @usableFromInline
  func stop() -> Bool {
    guard let upstream = end() else { return false }
    upstream.cancel()
    return true
  }

  private func end() -> (any Subscription)? {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    lock.withLock {
      phase.store(Phase.ended, ordering: .releasing)
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
    }
    return upstream
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    if !acceptsNone { demand.assertNonZero() }
    let upstream = lock.withLock {
      if phase.load(ordering: .relaxed) == Phase.awaiting { pending += demand }
      return self.upstream
    }
    upstream?.request(demand)
  }

  @usableFromInline func cancel() { end()?.cancel() }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror {
    guard isReflecting else { return Mirror(self, children: EmptyCollection()) }
    let downstream = lock.withLock { self.downstream }
    return mirror(("downstream", downstream as Any))
  }
}
