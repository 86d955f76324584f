import PortableCombine

/// A subscriber that stops asking for values until it is resumed.
public protocol Pausable {
  /// Whether it asks for nothing until it is resumed.
  var paused: Bool { get }

  /// Asks for the next value after a pause; has no effect otherwise.
  func resume()
}

extension Subscribers {
  /// Requests one value at a time and passes it to a function, which returns whether to continue.
  ///
  /// While it is paused, it requests nothing. The completion doesn't wait for it to resume. Both functions are released
  /// at the end.
  public final class PausableSink<Input, Failure: Error>: Subscriber, Cancellable, Pausable,
    CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
  {
    private typealias Functions = (completion: (Completion<Failure>) -> Void, value: (Input) -> Bool)

    private enum Pace {
      case awaiting  // One value is requested, or will be with the subscription.
      case deciding(isResumed: Bool)  // The function runs.
      case paused
    }

    private let lock = Lock()
    // Guarded by the lock.
    private var functions: Functions?
    private var subscription: (any Subscription)?
    private var pace = Pace.awaiting

    /// A sink that calls these functions.
    ///
    /// - Parameters:
    ///   - receiveCompletion: Gets the end of the stream, once.
    ///   - receiveValue: Gets each value and returns whether it wants the next; if not, the sink is paused.
    public init(
      receiveCompletion: @escaping (Completion<Failure>) -> Void, receiveValue: @escaping (Input) -> Bool
    ) {
      functions = (receiveCompletion, receiveValue)
    }

    /// Whether it waits to be resumed.
    public var isPaused: Bool {
      lock.withLock { if case .paused = pace { functions != nil } else { false } }
    }

    /// The same as ``isPaused``.
    public var paused: Bool { isPaused }

    /// Continues after a pause: requests the next value.
    ///
    /// While the function runs, this cancels the pause it may be about to ask for, so that a resumption by
    /// another thread is never lost. Otherwise, unless paused, it has no effect. May be called from any
    /// thread.
    public func resume() {
      let subscription: (any Subscription)? = lock.withLock {
        switch pace {
        case .awaiting: return nil
        case .deciding:
          pace = .deciding(isResumed: true)
          return nil
        case .paused:
          pace = .awaiting
          return self.subscription
        }
      }
      subscription?.request(.max(1))
    }

    public func receive(subscription: any Subscription) {
      let isAccepted = lock.withLock {
        guard functions != nil, self.subscription == nil else { return false }
        self.subscription = subscription
        return true
      }
      if isAccepted {
        subscription.request(.max(1))
      } else {
        subscription.cancel()
      }
    }

    public func receive(_ input: Input) -> Demand {
      let receiveValue: ((Input) -> Bool)? = lock.withLock {
        // A value that was not asked for is not taken.
        guard let functions, case .awaiting = pace else { return nil }
        pace = .deciding(isResumed: false)
        return functions.value
      }
      guard let receiveValue else { return .none }
      let goesOn = receiveValue(input)
      return lock.withLock {
        if !goesOn, case .deciding(isResumed: false) = pace {
          pace = .paused
          return .none
        }
        pace = .awaiting
        return .max(1)
      }
    }

    public func receive(completion: Completion<Failure>) { end().functions?.completion(completion) }

    /// Cancels the subscription. Neither function is called again on this thread.
    public func cancel() { end().subscription?.cancel() }

    private func end() -> (functions: Functions?, subscription: (any Subscription)?) {
      lock.withLock { (functions.take(), subscription.take()) }
    }

    /// `PausableSink`.
    public var description: String { "PausableSink" }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

    /// The description.
    public var playgroundDescription: Any { description }
  }
}

/// Controls a pausable sink. Cancels it when released, or when cancelled.
public final class PausableCancellable: Cancellable, Pausable {
  private let isPausedNow: () -> Bool
  private let resumeNow: () -> Void
  private let cancellable: AnyCancellable

  init<Input, Failure>(_ sink: Subscribers.PausableSink<Input, Failure>) {
    isPausedNow = { sink.isPaused }
    resumeNow = { sink.resume() }
    cancellable = AnyCancellable(sink)
  }

  /// Whether the sink waits to be resumed.
  public var isPaused: Bool { isPausedNow() }

  /// The same as ``isPaused``.
  public var paused: Bool { isPaused }

  /// Resumes the sink after a pause. See `Subscribers.PausableSink.resume()`.
  public func resume() { resumeNow() }

  /// Cancels the subscription.
  public func cancel() { cancellable.cancel() }
}

// The sink's lock guards its state, and all it calls are functions that subscribing has made the
// publisher's to call anyway.
extension PausableCancellable: @unchecked Sendable {}

extension Publisher {
  /// Subscribes, requests one value at a time, and passes it to a function that returns whether to continue.
  ///
  ///     let pages = (1...).publisher.pausableSink { page in
  ///       print("page", page)
  ///       return page % 10 != 0  // waits after every tenth page
  ///     }
  ///     pages.resume()  // prints the next ten
  ///
  /// - Parameters:
  ///   - receiveCompletion: Gets the end of the stream, once; also during a pause.
  ///   - receiveValue: Gets each value and returns whether to request the next one; if not, the sink pauses until it is
  ///     resumed.
  /// - Returns: An object that resumes the sink, and ends the subscription when cancelled or released.
  public func pausableSink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void = { _ in },
    receiveValue: @escaping (Output) -> Bool
  ) -> PausableCancellable {
    let sink = Subscribers.PausableSink(receiveCompletion: receiveCompletion, receiveValue: receiveValue)
    subscribe(sink)
    return PausableCancellable(sink)
  }
}
