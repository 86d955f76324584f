import Synchronization

extension Subscribers {
  /// Asks for everything and hands it to two functions.
  ///
  /// Both functions are released at completion, or on cancellation as soon as a value being delivered has been.
  @safe
  public final class Sink<Input, Failure: Error>: Subscriber, Cancellable, CustomStringConvertible,
    CustomReflectable, CustomPlaygroundDisplayConvertible
  {
    /// The functions, released by hand: a value may be using them on one thread while another cancels.
    @usableFromInline let functions: Unmanaged<SinkFunctions<Input, Failure>>

    /// Bit 0: ended. Bit 1: the functions are released. From bit 2: how many calls are using the functions.
    @usableFromInline let uses = Atomic<UInt>(0)

    private let lock = Lock()
    private var subscription: (any Subscription)?  // guarded by the lock
    private var isAttached = false  // guarded by the lock

    /// A sink that calls these functions.
    ///
    /// - Parameters:
    ///   - receiveCompletion: Gets the end of the stream, once.
    ///   - receiveValue: Gets each value.
    @inlinable
    public init(
      receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
      receiveValue: @escaping (Input) -> Void
    ) {
      unsafe functions = unsafe .passRetained(
        SinkFunctions(receiveCompletion: receiveCompletion, receiveValue: receiveValue))
    }

    deinit {
      if uses.load(ordering: .acquiring) & SinkUse.released == 0 { unsafe functions.release() }
    }

    /// The function that gets the values; one that does nothing after the end.
    public var receiveValue: (Input) -> Void {
      let isOpen = enter()
      defer { leave() }
      return unsafe isOpen ? functions._withUnsafeGuaranteedRef { $0.receiveValue } : { _ in }
    }

    /// The function that gets the completion; one that does nothing after the end.
    public var receiveCompletion: (Subscribers.Completion<Failure>) -> Void {
      let isOpen = enter()
      defer { leave() }
      return unsafe isOpen ? functions._withUnsafeGuaranteedRef { $0.receiveCompletion } : { _ in }
    }

    public func receive(subscription: any Subscription) {
      let isAccepted = lock.withLock {
        if isAttached || uses.load(ordering: .relaxed) & SinkUse.ended != 0 { return false }
        isAttached = true
        self.subscription = subscription
        return true
      }
      subscription.start(requesting: isAccepted ? .unlimited : nil)
    }

    @inlinable
    public func receive(_ input: Input) -> Subscribers.Demand {
      if enter() {
        unsafe functions._withUnsafeGuaranteedRef { $0.receiveValue(input) }
      }
      leave()
      return .none
    }

    public func receive(completion: Subscribers.Completion<Failure>) {
      if enter(), end() {
        let subscription = takeSubscription()
        unsafe functions._withUnsafeGuaranteedRef { $0.receiveCompletion(completion) }
        withExtendedLifetime(subscription) {}
      }
      leave()
    }

    /// Cancels the subscription. Neither function is called again on this thread.
    public func cancel() {
      _ = enter()
      if end() { takeSubscription()?.cancel() }
      leave()
    }

    /// Announces a use of the functions, to be followed by `leave()` whatever the outcome.
    ///
    /// - Returns: Whether the sink is still open, so that the functions may be used.
    @inlinable @inline(__always)
    func enter() -> Bool { uses.add(SinkUse.one, ordering: .acquiring).oldValue & SinkUse.ended == 0 }

    @inlinable @inline(__always)
    func leave() {
      if uses.subtract(SinkUse.one, ordering: .acquiringAndReleasing).newValue == SinkUse.ended { release() }
    }

    /// - Returns: Whether this call ended it.
    private func end() -> Bool {
      lock.withLock {
        uses.bitwiseOr(SinkUse.ended, ordering: .acquiringAndReleasing).oldValue & SinkUse.ended == 0
      }
    }

    private func takeSubscription() -> (any Subscription)? {
      var taken: (any Subscription)?
      lock.withLock { swap(&taken, &subscription) }
      return taken
    }

    @usableFromInline
    func release() {
      let (isOurs, _) = uses.compareExchange(
        expected: SinkUse.ended, desired: SinkUse.ended | SinkUse.released,
        ordering: .acquiringAndReleasing)
      if isOurs { unsafe functions.release() }
    }

    /// `Sink`.
    public var description: String { "Sink" }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

    /// The description.
    public var playgroundDescription: Any { description }
  }
}

/// The parts of a sink's counter.
@usableFromInline
enum SinkUse {
  @inlinable static var ended: UInt { 1 }
  @inlinable static var released: UInt { 2 }
  @inlinable static var one: UInt { 4 }
}

/// The two functions of a sink.
@usableFromInline
final class SinkFunctions<Input, Failure: Error> {
  @usableFromInline let receiveCompletion: (Subscribers.Completion<Failure>) -> Void
  @usableFromInline let receiveValue: (Input) -> Void

  @inlinable
  init(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
    receiveValue: @escaping (Input) -> Void
  ) {
    self.receiveCompletion = receiveCompletion
    self.receiveValue = receiveValue
  }
}

extension Publisher {
  /// Subscribes with unlimited demand and hands values and completion to functions.
  ///
  /// - Parameters:
  ///   - receiveCompletion: Gets the end of the stream, once.
  ///   - receiveValue: Gets each value.
  /// - Returns: An object that ends the subscription when cancelled or released.
  @inlinable
  public func sink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
    receiveValue: @escaping (Output) -> Void
  ) -> AnyCancellable {
    let sink = Subscribers.Sink(receiveCompletion: receiveCompletion, receiveValue: receiveValue)
    subscribe(sink)
    return AnyCancellable(sink)
  }
}

extension Publisher where Failure == Never {
  /// Subscribes with unlimited demand and hands values to a function.
  ///
  /// - Parameter receiveValue: Gets each value.
  /// - Returns: An object that ends the subscription when cancelled or released.
  @inlinable
  public func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable {
    let sink = Subscribers.Sink<Output, Never>(receiveCompletion: { _ in }, receiveValue: receiveValue)
    subscribe(sink)
    return AnyCancellable(sink)
  }
}
