import Synchronization

extension Publishers {
  /// Delivers all values of one publisher, then those of another.
  public struct Concatenate<Prefix: Publisher, Suffix: Publisher>: Publisher
  where Prefix.Failure == Suffix.Failure, Prefix.Output == Suffix.Output {
    public typealias Output = Suffix.Output
    public typealias Failure = Suffix.Failure

    /// The publisher that comes first.
    public let prefix: Prefix
    /// The publisher that is subscribed to when the first has finished.
    public let suffix: Suffix

    /// Puts one publisher after another.
    @inlinable
    public init(prefix: Prefix, suffix: Suffix) {
      self.prefix = prefix
      self.suffix = suffix
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      // A part of a longer chain, behind `AnyPublisher`: the chain's subscriber takes over its two parts.
      if S.self == AnySubscriber<Output, Failure>.self,
        let chain = unsafe unsafeBitCast(subscriber, to: AnySubscriber<Output, Failure>.self).box.object
          as? ConcatenateChain<Output, Failure>,
        chain.splice({ prefix.receive(subscriber: $0) }, { suffix.receive(subscriber: $0) })
      {
        return
      }
      let inner = ConcatenateSubscriber<Output, Failure, S>(downstream: subscriber)
      inner.link.push { suffix.receive(subscriber: $0) }
      subscriber.receive(subscription: inner.link)
      if inner.link.run(inner, { prefix.receive(subscriber: $0) }) {
        subscriber.receive(completion: .finished)
      }
    }
  }
}

extension Publishers.Concatenate: Equatable where Prefix: Equatable, Suffix: Equatable {}
extension Publishers.Concatenate: Sendable where Prefix: Sendable, Suffix: Sendable {}

/// A chain of publishers, as seen by a part that does not know the chain's type.
@usableFromInline
class ConcatenateChain<Input, Failure: Error> {
  @usableFromInline typealias Part = (AnySubscriber<Input, Failure>) -> Void

  @usableFromInline init() {}

  /// Takes two parts in place of the part that is being subscribed to.
  ///
  /// - Returns: False if none is.
  @usableFromInline
  func splice(_ prefix: @escaping Part, _ suffix: @escaping Part) -> Bool { false }
}

/// The subscriber of each part of a chain in turn.
@usableFromInline
final class ConcatenateSubscriber<Input, Failure, Downstream: Subscriber>: ConcatenateChain<Input, Failure>,
  Subscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let link = ConcatenateLink<ConcatenateSubscriber>()

  @inlinable
  init(downstream: Downstream) {
    self.downstream = downstream
    super.init()
  }

  @inlinable func receive(subscription: any Subscription) { link.connect(subscription) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    // Values without demand are ignored.
    guard link.isAttached.load(ordering: .acquiring), link.demand.take() else {
      _ = link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    let more = downstream.receive(input)
    link.demand.add(more)
    return more
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.ignoreIfEarly(.completionBeforeSubscription) { return }
    switch completion {
    case .finished:
      if link.next(self) { downstream.receive(completion: completion) }
    case .failure:
      if link.end() { downstream.receive(completion: completion) }
    }
  }

  override func splice(_ prefix: @escaping Part, _ suffix: @escaping Part) -> Bool {
    let isFinished = link.splice(self, { prefix(AnySubscriber($0)) }, { suffix(AnySubscriber($0)) })
    if isFinished == true { downstream.receive(completion: .finished) }
    return isFinished != nil
  }

  @usableFromInline var description: String { "Concatenate" }

  @usableFromInline var customMirror: Mirror {
    return mirror(("downstream", downstream), ("demand", link.demand.value))
  }
}

extension Publisher {
  /// Delivers elements before the values of this publisher.
  @inlinable
  public func prepend(
    _ elements: Output...
  ) -> Publishers.Concatenate<Publishers.Sequence<[Output], Failure>, Self> {
    prepend(elements)
  }

  /// Delivers the elements of a sequence before the values of this publisher.
  @inlinable
  public func prepend<S: Swift.Sequence>(
    _ elements: S
  ) -> Publishers.Concatenate<Publishers.Sequence<S, Failure>, Self> where S.Element == Output {
    prepend(Publishers.Sequence(sequence: elements))
  }

  /// Delivers the values of another publisher before those of this one, which is subscribed to when the other has finished.
  ///
  /// Demand that the first publisher hasn't met is requested from the second. If the first fails, so does the whole.
  @inlinable
  public func prepend<P: Publisher>(_ publisher: P) -> Publishers.Concatenate<P, Self>
  where P.Output == Output, P.Failure == Failure {
    Publishers.Concatenate(prefix: publisher, suffix: self)
  }

  /// Delivers elements after the values of this publisher.
  @inlinable
  public func append(
    _ elements: Output...
  ) -> Publishers.Concatenate<Self, Publishers.Sequence<[Output], Failure>> {
    append(elements)
  }

  /// Delivers the elements of a sequence after the values of this publisher.
  @inlinable
  public func append<S: Swift.Sequence>(
    _ elements: S
  ) -> Publishers.Concatenate<Self, Publishers.Sequence<S, Failure>> where S.Element == Output {
    append(Publishers.Sequence(sequence: elements))
  }

  /// Delivers the values of another publisher after those of this one; the other is subscribed to when this one has finished.
  ///
  /// Demand that the first publisher hasn't met is requested from the second. If the first fails, so does the whole. Unlike in
  /// Combine, a value that was not asked for is ignored and does not stop the program.
  @inlinable
  public func append<P: Publisher>(_ publisher: P) -> Publishers.Concatenate<Self, P>
  where P.Output == Output, P.Failure == Failure {
    Publishers.Concatenate(prefix: self, suffix: publisher)
  }
}

// A sequence with elements before or after it is a sequence.
extension Publishers.Sequence where Elements: RangeReplaceableCollection {
  /// The sequence with elements before it.
  @inlinable
  public func prepend(_ elements: Elements.Element...) -> Publishers.Sequence<Elements, Failure> {
    prepend(elements)
  }

  /// The sequence with the elements of another before it.
  @inlinable
  public func prepend<S: Swift.Sequence>(_ elements: S) -> Publishers.Sequence<Elements, Failure>
  where S.Element == Elements.Element {
    var all = Elements(elements)
    all.append(contentsOf: sequence)
    return Publishers.Sequence(sequence: all)
  }

  /// The sequence with that of another publisher before it.
  @inlinable
  public func prepend(
    _ publisher: Publishers.Sequence<Elements, Failure>
  ) -> Publishers.Sequence<Elements, Failure> {
    prepend(publisher.sequence)
  }

  /// The sequence with elements after it.
  @inlinable
  public func append(_ elements: Elements.Element...) -> Publishers.Sequence<Elements, Failure> {
    append(elements)
  }

  /// The sequence with the elements of another after it.
  @inlinable
  public func append<S: Swift.Sequence>(_ elements: S) -> Publishers.Sequence<Elements, Failure>
  where S.Element == Elements.Element {
    var all = sequence
    all.append(contentsOf: elements)
    return Publishers.Sequence(sequence: all)
  }

  /// The sequence with that of another publisher after it.
  @inlinable
  public func append(
    _ publisher: Publishers.Sequence<Elements, Failure>
  ) -> Publishers.Sequence<Elements, Failure> {
    append(publisher.sequence)
  }
}
