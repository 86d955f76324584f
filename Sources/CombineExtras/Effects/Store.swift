import PortableCombine

/// Holds a state that changes by actions, and runs the effects that come of them.
///
///     enum Action { case add(Int), load, loaded(Int) }
///     let store = Store<Int, Action>(initialState: 0) { state, action in
///       switch action {
///       case .add(let number):
///         state += number
///         return []
///       case .load:
///         return [.sync { .loaded(42) }]
///       case .loaded(let number):
///         state = number
///         return []
///       }
///     }
///     store.send(.load)
///     print(store.state)  // 42
///
/// Actions are processed one at a time, in the order in which they were sent. An action that is sent while another is
/// being processed, by an effect, a subscriber or another thread, is queued, so the stack does not grow. The call that
/// sent the first of them drains the queue. All functions may be called from any thread.
///
/// The store keeps effects until they end, and cancels those that are left when it is released.
public final class Store<State, Action> {
  /// Changes the state by an action, and says what is to be done then. Called by one thread at a time.
  public typealias Reducer = @Sendable (inout State, Action) -> [Effect<Action, Never>]

  private enum Run {
    case starting
    case running(AnyCancellable)
  }

  private let reducer: Reducer
  private let states: CurrentValueSubject<State, Never>

  /// Within which the ids of effects are known.
  public let scope: EffectScope

  private let lock = Lock()
  // Guarded by the lock.
  private var waiting: [Action] = []
  private var isWorking = false
  private var runs: [Int: Run] = [:]  // by ticket
  private var lastTicket = 0

  /// A store.
  ///
  /// - Parameters:
  ///   - initialState: The state before the first action.
  ///   - scope: Within which the ids of effects are known; one of the store's own unless given.
  ///   - reducer: Changes the state.
  public init(initialState: State, scope: EffectScope = EffectScope(), reducer: @escaping Reducer) {
    self.reducer = reducer
    self.scope = scope
    states = CurrentValueSubject(initialState)
  }

  /// A store with a reducer that is a value, see ``CombineExtras/Reducer``.
  ///
  /// - Parameters:
  ///   - initialState: The state before the first action.
  ///   - scope: Within which the ids of effects are known; one of the store's own unless given.
  ///   - reducer: Changes the state.
  public convenience init(
    initialState: State, scope: EffectScope = EffectScope(), reducer: CombineExtras.Reducer<State, Action>
  ) {
    self.init(initialState: initialState, scope: scope, reducer: reducer.reduce)
  }

  /// A store whose reducer gets what it needs of the world outside.
  ///
  /// - Parameters:
  ///   - initialState: The state before the first action.
  ///   - environment: Handed to the reducer.
  ///   - scope: Within which the ids of effects are known; one of the store's own unless given.
  ///   - reducer: Changes the state.
  public convenience init<Environment: Sendable>(
    initialState: State, environment: Environment, scope: EffectScope = EffectScope(),
    reducer: @escaping @Sendable (inout State, Action, Environment) -> [Effect<Action, Never>]
  ) {
    self.init(initialState: initialState, scope: scope) { reducer(&$0, $1, environment) }
  }

  /// The present state.
  public var state: State { states.value }

  /// The present state and those that follow, one for each action.
  public var publisher: AnyPublisher<State, Never> { states.eraseToAnyPublisher() }

  /// How many effects have not ended.
  public var effectsInFlight: Int { lock.withLock { runs.count } }

  /// Changes the state by an action and runs the effects that come of it, unless an action is being
  /// processed; then it is queued.
  public func send(_ action: Action) {
    let isFirst = lock.withLock {
      waiting.append(action)
      defer { isWorking = true }
      return !isWorking
    }
    if isFirst { work() }
  }

  private func work() {
    var batch: [Action] = []
    while true {
      let isDone = lock.withLock {
        swap(&batch, &waiting)
        isWorking = !batch.isEmpty
        return batch.isEmpty
      }
      if isDone { return }
      for action in batch {
        var state = states.value
        let effects = reducer(&state, action)
        states.send(state)
        for effect in effects { run(effect) }
      }
      batch.removeAll(keepingCapacity: true)
    }
  }

  private func run(_ effect: Effect<Action, Never>) {
    let ticket = lock.withLock {
      lastTicket += 1
      runs[lastTicket] = .starting
      return lastTicket
    }
    let run = effect.publisher(in: scope).sink(
      receiveCompletion: { [weak self] _ in self?.forget(ticket) },
      receiveValue: { [weak self] in self?.send($0) })
    // An effect that has ended by now is not kept.
    lock.withLock {
      if runs[ticket] != nil { runs[ticket] = .running(run) }
    }
  }

  private func forget(_ ticket: Int) {
    let ended = lock.withLock { runs.removeValue(forKey: ticket) }
    withExtendedLifetime(ended) {}
  }
}

// The lock guards what the store holds, and one thread at a time uses the reducer.
extension Store: @unchecked Sendable where State: Sendable, Action: Sendable {}
