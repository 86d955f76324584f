extension Publishers {
  /// Delivers the elements of a sequence on demand, then finishes.
  public struct Sequence<Elements: Swift.Sequence, Failure: Error>: Publisher {
    public typealias Output = Elements.Element

    /// The elements.
    public let sequence: Elements

    /// A publisher of the elements of a sequence, which is iterated anew for each subscriber.
    @inlinable
    public init(sequence: Elements) { self.sequence = sequence }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let subscription = SequenceSubscription<Elements, S>(sequence, downstream: subscriber)
      if unsafe subscription.next == nil {
        subscription.cancel()
        subscriber.receive(subscription: Subscriptions.empty)
        subscriber.receive(completion: .finished)
      } else {
        subscriber.receive(subscription: subscription)
      }
    }
  }
}

extension Publishers.Sequence: Equatable where Elements: Equatable {}
extension Publishers.Sequence: Sendable where Elements: Sendable {}

@usableFromInline
final class SequenceSubscription<Elements: Swift.Sequence, Downstream: Subscriber>: Subscription, OperatorPart
where Downstream.Input == Elements.Element {
  @usableFromInline let word = DemandWord()

  // Used by the delivering caller; after the end, by the caller that releases them.
  @usableFromInline @exclusivity(unchecked) var iterator: Elements.Iterator?
  @usableFromInline @exclusivity(unchecked) var next: Elements.Element?
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?

  private let lock = Lock()
  private var sequence: Elements?  // guarded by the lock; for the mirror

  /// `deliver()` for this subscription's types, compiled in a context that has them; captures nothing.
  @usableFromInline let deliverAll: (SequenceSubscription) -> Void

  @inlinable
  init(_ sequence: Elements, downstream: Downstream) {
    var iterator = sequence.makeIterator()
    unsafe next = iterator.next()
    unsafe self.iterator = iterator
    unsafe self.downstream = downstream
    deliverAll = { $0.deliver() }
    setSequence(sequence)
  }

  @usableFromInline
  func setSequence(_ sequence: Elements?) {
    var sequence = sequence
    lock.withLock { swap(&sequence, &self.sequence) }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    if word.request(demand) { deliverAll(self) }
  }

  @usableFromInline
  func cancel() {
    if word.end() { release() }
  }

  @inlinable
  func deliver() {
    // Local copies, so that the loop works in registers; written back before others may deliver.
    guard let downstream = unsafe downstream, var iterator = unsafe iterator else { return }
    var next = unsafe self.next
    while let asked = word.take() {
      var remaining = asked
      while remaining > 0, let value = next {
        next = iterator.next()
        let more = downstream.receive(value)
        if remaining != DemandWord.unlimited {
          remaining = DemandWord.sum(remaining - 1, DemandWord.count(more))
        }
        if word.isEnded { break }
      }
      if next == nil, !word.isEnded {
        _ = word.end()
        release()
        downstream.receive(completion: .finished)
        return
      }
      unsafe self.iterator = iterator
      unsafe self.next = next
      if word.pause() { return }
    }
    release()
  }

  @usableFromInline
  func release() {
    unsafe downstream = nil
    unsafe next = nil
    unsafe iterator = nil
    setSequence(nil)
  }

  @usableFromInline var description: String {
    let sequence = lock.withLock { self.sequence }
    return sequence.map { String(describing: $0) } ?? "Sequence"
  }

  @usableFromInline var customMirror: Mirror {
    let sequence = lock.withLock { self.sequence }
    let shown: Any = if let sequence { sequence } else { [Elements.Element]() }
    return mirror(("sequence", shown))
  }
}

extension Swift.Sequence {
  /// A publisher of the elements.
  @inlinable
  public var publisher: Publishers.Sequence<Self, Never> { Publishers.Sequence(sequence: self) }
}
