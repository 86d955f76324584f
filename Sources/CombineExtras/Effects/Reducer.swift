import PortableCombine

/// A function of a ``Store`` as a value, which is built from smaller ones.
///
/// A reducer for a part of the program has access to that part's state and actions only. `pullback` lifts it to the state
/// and the actions of the whole program, and `combine` puts the lifted reducers together:
///
///     struct App { var count = 0, text = "" }
///     enum AppAction { case counter(CounterAction), editor(EditorAction) }
///     let app = Reducer.combine(
///       counter.pullback(
///         state: \App.count,
///         action: { if case .counter(let action) = $0 { action } else { nil } },
///         embed: { AppAction.counter($0) }),
///       editor.pullback(
///         state: \App.text,
///         action: { if case .editor(let action) = $0 { action } else { nil } },
///         embed: { AppAction.editor($0) }))
///     let store = Store(initialState: App(), reducer: app.logging())
///
/// The closure captures the reducer's dependencies.
public struct Reducer<State, Action>: Sendable {
  /// Changes the state by an action and returns the effects that the store runs then.
  public let reduce: @Sendable (inout State, Action) -> [Effect<Action, Never>]

  /// A reducer that is a function.
  public init(_ reduce: @escaping @Sendable (inout State, Action) -> [Effect<Action, Never>]) {
    self.reduce = reduce
  }

  /// Runs reducers one after the other on the same state and action, and returns the effects of all of them, in that order.
  public static func combine(_ reducers: Reducer...) -> Reducer {
    Reducer { state, action in
      reducers.flatMap { $0.reduce(&state, action) }
    }
  }

  /// Lifts this reducer to a larger state and a larger set of actions.
  ///
  /// - Parameters:
  ///   - state: This reducer's state within the larger one.
  ///   - extract: Returns this reducer's action in a larger one; nil if the action is for another reducer, so that this one
  ///     does nothing.
  ///   - embed: Makes a larger action of one that an effect of this reducer sends.
  public func pullback<WholeState, WholeAction>(
    state: any WritableKeyPath<WholeState, State> & Sendable,
    action extract: @escaping @Sendable (WholeAction) -> Action?,
    embed: @escaping @Sendable (Action) -> WholeAction
  ) -> Reducer<WholeState, WholeAction> {
    Reducer<WholeState, WholeAction> { whole, action in
      guard let action = extract(action) else { return [] }
      return reduce(&whole[keyPath: state], action).map { $0.map(embed) }
    }
  }

  /// Writes a line for each action, and one for the state that it leads to, before the action's other effects run.
  ///
  /// - Parameter write: Gets each line, on the thread that works on the action; prints it unless given.
  public func logging(_ write: @escaping @Sendable (String) -> Void = { print($0) }) -> Reducer {
    Reducer { state, action in
      let effects = reduce(&state, action)
      let lines = ["action: \(action)", "state: \(state)"]
      return [.fireAndForget { for line in lines { write(line) } }] + effects
    }
  }
}
