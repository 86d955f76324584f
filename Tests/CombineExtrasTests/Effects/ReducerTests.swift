import CombineExtras
import PortableCombine
import Synchronization
import Testing

@Suite struct ReducerTests {
  struct Whole: Equatable, Sendable {
    var count = 0
    var text = ""
  }

  enum CounterAction: Sendable { case add(Int), twice(Int) }

  enum WholeAction: Sendable { case counter(CounterAction), type(String) }

  static let counter = Reducer<Int, CounterAction> { count, action in
    switch action {
    case .add(let number):
      count += number
      return []
    case .twice(let number):
      return [.sync { .add(number) }, .sync { .add(number) }]
    }
  }

  static let editor = Reducer<Whole, WholeAction> { whole, action in
    if case .type(let text) = action { whole.text += text }
    return []
  }

  static let whole = Reducer.combine(
    counter.pullback(
      state: \Whole.count,
      action: { if case .counter(let action) = $0 { action } else { nil } },
      embed: { WholeAction.counter($0) }),
    editor)

  @Test func aReducerThatIsPulledBackChangesItsPartAlone() {
    var state = Whole(count: 1, text: "a")
    #expect(Self.whole.reduce(&state, .counter(.add(2))).isEmpty)
    #expect(state == Whole(count: 3, text: "a"))
    #expect(Self.whole.reduce(&state, .type("b")).isEmpty)
    #expect(state == Whole(count: 3, text: "ab"))
  }

  @Test func itsEffectsSendActionsOfTheWhole() {
    let store = Store(initialState: Whole(), reducer: Self.whole)
    store.send(.counter(.twice(5)))
    #expect(store.state == Whole(count: 10))
    #expect(store.effectsInFlight == 0)
  }

  @Test func idsAreKnownInTheScopeOfTheStoreThroughAPullback() {
    let source = PassthroughSubject<CounterAction, Never>()
    let listening = Reducer<Int, CounterAction> { count, action in
      if case .add(let number) = action {
        count += number
        return [.cancel(id: "source")]
      }
      return [source.eraseToEffect().cancellable(id: "source")]
    }
    let store = Store(
      initialState: Whole(),
      reducer: listening.pullback(
        state: \Whole.count,
        action: { if case .counter(let action) = $0 { action } else { nil } },
        embed: { WholeAction.counter($0) }))
    store.send(.counter(.twice(0)))
    #expect(store.scope.isInFlight(id: "source"))
    source.send(.add(3))
    #expect(store.state.count == 3)
    #expect(!store.scope.isInFlight(id: "source"))
    source.send(.add(3))
    #expect(store.state.count == 3)
  }

  @Test func combinedReducersRunInOrderAndAllTheirEffectsRun() {
    let first = Reducer<[Int], Int> { state, action in
      state.append(action)
      return action == 1 ? [.sync { 2 }] : []
    }
    let second = Reducer<[Int], Int> { state, action in
      state.append(action * 10)
      return action == 1 ? [.sync { 3 }] : []
    }
    let store = Store(initialState: [], reducer: Reducer.combine(first, second))
    store.send(1)
    #expect(store.state == [1, 10, 2, 20, 3, 30])
  }

  @Test func loggingWritesTheActionAndTheStateBeforeOtherEffectsRun() {
    let lines = Mutex<[String]>([])
    let reducer = Reducer<Int, Int> { state, action in
      state += action
      return action == 1 ? [.fireAndForget { lines.withLock { $0.append("effect") } }, .sync { 2 }] : []
    }
    let store = Store(
      initialState: 0, reducer: reducer.logging { line in lines.withLock { $0.append(line) } })
    store.send(1)
    #expect(lines.withLock { $0 } == ["action: 1", "state: 1", "effect", "action: 2", "state: 3"])
  }
}
