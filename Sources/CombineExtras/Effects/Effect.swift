import PortableCombine

/// Work that a reducer asks for, whose values are sent back to the store as actions.
///
/// An effect is a publisher, so every operator that makes publishers makes effects:
///
///     func search(_ text: String) -> Effect<Action, Never> {
///       index.search(text)
///         .map { Action.found($0) }
///         .replaceError(with: .failed)
///         .eraseToEffect()
///         .debounce(id: "search", for: .milliseconds(300), scheduler: queue)
///     }
///
/// The ids of ``cancellable(id:cancelInFlight:)``, ``cancel(id:)`` and ``debounce(id:for:scheduler:)`` are
/// known within the scope of the store that runs the effect, which the effects made here hand on to the
/// effects they consist of. Operators that are not `Effect`'s own know nothing of scopes: put ids last,
/// after them. An effect that is subscribed to directly has a scope of its own for each subscription.
public struct Effect<Output, Failure: Error>: Publisher {
  private let makePublisher: (EffectScope) -> AnyPublisher<Output, Failure>

  /// An effect that is a publisher.
  public init<P: Publisher>(_ publisher: P) where P.Output == Output, P.Failure == Failure {
    let erased = publisher.eraseToAnyPublisher()
    makePublisher = { _ in erased }
  }

  init(makePublisher: @escaping (EffectScope) -> AnyPublisher<Output, Failure>) {
    self.makePublisher = makePublisher
  }

  /// The effect as a publisher whose ids are those of a scope.
  public func publisher(in scope: EffectScope) -> AnyPublisher<Output, Failure> { makePublisher(scope) }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    makePublisher(EffectScope()).subscribe(subscriber)
  }
}

extension Publisher {
  /// This publisher as an effect.
  public func eraseToEffect() -> Effect<Output, Failure> { Effect(self) }
}

// Effects from scratch.
extension Effect {
  /// No work: finishes at once.
  public static var none: Effect { Effect(Empty()) }

  /// Work without a result, done when the effect is run.
  ///
  ///     return [.fireAndForget { log.write("saved") }]
  public static func fireAndForget(_ work: @escaping () -> Void) -> Effect {
    Effect(
      Deferred { () -> Empty<Output, Failure> in
        work()
        return Empty()
      })
  }

  /// A piece of work that returns a result; it starts when the effect is run.
  ///
  ///     return [.sync { .loaded(defaults.integer(forKey: "count")) }]
  public static func sync(_ work: @escaping () -> Output) -> Effect {
    Effect(Deferred { Just(work()).setFailureType(to: Failure.self) })
  }

  /// Work that gives its result to a promise. A `Future` starts when it is made; this starts when the
  /// effect is run, each time anew.
  ///
  ///     return [.future { promise in api.load { promise(.success(.loaded($0))) } }]
  public static func future(
    _ attemptToFulfill: @escaping (@escaping Future<Output, Failure>.Promise) -> Void
  ) -> Effect {
    Effect(Deferred { Future(attemptToFulfill) })
  }

  /// Ends the effects in flight with this id in the scope of the store that runs this.
  ///
  ///     return [.cancel(id: "socket")]
  public static func cancel<ID: Hashable & Sendable>(id: ID) -> Effect {
    Effect { scope in
      Effect.fireAndForget { scope.cancel(id: id) }.publisher(in: scope)
    }
  }
}

// Effects from effects.
extension Effect {
  /// The same effect.
  public func eraseToEffect() -> Effect { self }

  /// The same effect with other values.
  public func map<NewOutput>(_ transform: @escaping (Output) -> NewOutput) -> Effect<NewOutput, Failure> {
    Effect<NewOutput, Failure> { publisher(in: $0).map(transform).eraseToAnyPublisher() }
  }

  /// Effects that run at the same time. The first failure ends them all.
  public static func merge(_ effects: Effect...) -> Effect {
    Effect { scope in
      effects.publisher.setFailureType(to: Failure.self)
        .flatMap { $0.publisher(in: scope) }
        .eraseToAnyPublisher()
    }
  }

  /// Effects that run one after the other. The first failure ends them all.
  public static func concatenate(_ effects: Effect...) -> Effect {
    Effect { scope in
      effects.publisher.setFailureType(to: Failure.self)
        .flatMap(maxPublishers: .max(1)) { $0.publisher(in: scope) }
        .eraseToAnyPublisher()
    }
  }

  /// The same effect, which can be ended by its id. See ``EffectScope/cancel(id:)``.
  ///
  ///     let messages = socket.messages.map { Action.received($0) }.eraseToEffect().cancellable(id: "socket")
  ///
  /// - Parameters:
  ///   - id: The id, which several effects may have.
  ///   - cancelInFlight: Whether running this ends the effects in flight with this id first.
  public func cancellable<ID: Hashable & Sendable>(id: ID, cancelInFlight: Bool = false) -> Effect {
    Effect { scope in
      CancellableEffect(
        upstream: publisher(in: scope), scope: scope, id: id, cancelsInFlight: cancelInFlight
      ).eraseToAnyPublisher()
    }
  }

  /// Runs this effect only after some time in which no other was debounced with this id.
  ///
  /// - Parameters:
  ///   - id: The id, by which the effect can also be ended, while it waits and while it runs.
  ///   - dueTime: How long to wait.
  ///   - scheduler: Where to wait, and to start the effect.
  public func debounce<ID: Hashable & Sendable, S: Scheduler>(
    id: ID, for dueTime: S.SchedulerTimeType.Stride, scheduler: S
  ) -> Effect {
    let delayed = Effect { scope in
      Deferred {
        Future<Void, Never> { promise in
          scheduler.schedule(after: scheduler.now.advanced(by: dueTime)) { promise(.success(())) }
        }
      }
      .setFailureType(to: Failure.self)
      .flatMap { publisher(in: scope) }
      .eraseToAnyPublisher()
    }
    return delayed.cancellable(id: id, cancelInFlight: true)
  }
}
