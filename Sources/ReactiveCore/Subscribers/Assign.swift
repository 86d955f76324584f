extension Subscribers {
  /// Asks for everything and writes it to a property of an object, which it keeps until the end.
  public final class Assign<Root, Input>: Subscriber, Cancellable, CustomStringConvertible, CustomReflectable,
    CustomPlaygroundDisplayConvertible
  {
    public typealias Failure = Never

    private enum State {
      case awaiting
      case attached(any Subscription)
      case ended
    }

    private let lock = Lock()
    private var state = State.awaiting  // guarded by the lock
    private var target: Root?  // guarded by the lock

    /// The property written to.
    public let keyPath: ReferenceWritableKeyPath<Root, Input>

    /// The object written to; nil after the end.
    public var object: Root? {
      lock.withLock { target }
    }

    /// A subscriber that writes to a property.
    ///
    /// - Parameters:
    ///   - object: The object, kept until completion or cancellation.
    ///   - keyPath: The property.
    public init(object: Root, keyPath: ReferenceWritableKeyPath<Root, Input>) {
      target = object
      self.keyPath = keyPath
    }

    public func receive(subscription: any Subscription) {
      let isAccepted = lock.withLock {
        guard case .awaiting = state else { return false }
        state = .attached(subscription)
        return true
      }
      subscription.start(requesting: isAccepted ? .unlimited : nil)
    }

    public func receive(_ value: Input) -> Subscribers.Demand {
      let object: Root? = lock.withLock {
        if case .attached = state { target } else { nil }
      }
      object?[keyPath: keyPath] = value
      return .none
    }

    public func receive(completion: Subscribers.Completion<Never>) { _ = end() }

    /// Cancels the subscription and releases the object.
    public func cancel() {
      if case .attached(let subscription) = end().state { subscription.cancel() }
    }

    /// Ends it and returns what was held, to be released outside the lock.
    private func end() -> (state: State, object: Root?) {
      lock.withLock { (exchange(&state, with: .ended), target.take()) }
    }

    /// The names of the types involved.
    public var description: String { "Assign \(Root.self)." }

    /// Shows the object, the property and the subscription.
    public var customMirror: Mirror {
      let (state, object): (State, Root?) = lock.withLock { (self.state, target) }
      return Mirror(
        self,
        children: [
          ("object", object as Any), ("keyPath", keyPath), ("status", state),
        ])
    }

    /// The description.
    public var playgroundDescription: Any { description }
  }
}

extension Publisher where Failure == Never {
  /// Writes each value to a property of an object.
  ///
  /// - Parameters:
  ///   - keyPath: The property.
  ///   - object: The object, kept until completion or cancellation.
  /// - Returns: An object that ends the subscription when cancelled or released.
  public func assign<Root>(to keyPath: ReferenceWritableKeyPath<Root, Output>, on object: Root)
    -> AnyCancellable
  {
    let assign = Subscribers.Assign(object: object, keyPath: keyPath)
    subscribe(assign)
    return AnyCancellable(assign)
  }
}
