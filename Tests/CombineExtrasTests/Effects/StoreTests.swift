import Dispatch
import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct StoreTests {
  enum ExampleAction { case add(Int), load, loaded(Int) }

  @Test func theExampleDoesWhatItSays() {
    let store = Store<Int, ExampleAction>(initialState: 0) { state, action in
      switch action {
      case .add(let number):
        state += number
        return []
      case .load:
        return [.sync { .loaded(42) }]
      case .loaded(let number):
        state = number
        return []
      }
    }
    store.send(.add(1))
    #expect(store.state == 1)
    store.send(.load)
    #expect(store.state == 42)
    #expect(store.effectsInFlight == 0)
  }

  @Test func publishesTheStateAfterEachAction() {
    let store = Store<Int, Int>(initialState: 1) { state, action in
      state += action
      return []
    }
    let history = History()
    let subscription = store.publisher.sink { history.append(.value($0)) }
    store.send(2)
    store.send(3)
    subscription.cancel()
    store.send(4)
    #expect(history.take() == [.value(1), .value(3), .value(6)])
    #expect(store.state == 10)
  }

  @Test func synchronousEffectsAreQueuedNotNestedAndNotKept() {
    let depth = Mutex((now: 0, deepest: 0))
    let store = Store<[Int], Int>(initialState: []) { state, action in
      depth.withLock {
        $0.now += 1
        $0.deepest = max($0.deepest, $0.now)
      }
      defer { depth.withLock { $0.now -= 1 } }
      state.append(action)
      return action == 1 ? [.sync { 2 }, .merge(.sync { 3 }, .sync { 4 })] : action == 2 ? [.sync { 5 }] : []
    }
    store.send(1)
    #expect(store.state == [1, 2, 3, 4, 5])
    #expect(depth.withLock { $0.deepest } == 1)
    #expect(store.effectsInFlight == 0)
  }

  @Test func actionsThatCauseEachOtherNeedAConstantStack() {
    let store = Store<Int, Int>(initialState: 0) { state, action in
      state = action
      return action < 100_000 ? [.sync { action + 1 }] : []
    }
    store.send(1)
    #expect(store.state == 100_000)
    #expect(store.effectsInFlight == 0)
  }

  @Test func whatASubscriberToTheStateSendsComesNext() {
    let store = Store<[Int], Int>(initialState: []) { state, action in
      state.append(action)
      return []
    }
    let subscription = store.publisher.sink { [unowned store] in
      if $0 == [1] {
        store.send(2)
        #expect(store.state == [1])
      }
    }
    store.send(1)
    #expect(store.state == [1, 2])
    subscription.cancel()
  }

  enum SocketAction: Equatable, Sendable { case open, close, received(String), closed }

  @Test func aSocketStaysOpenUntilItIsClosedById() {
    let messages = PassthroughSubject<String, Never>()
    let cancellations = Mutex(0)
    let store = Store<[SocketAction], SocketAction>(initialState: []) { state, action in
      state.append(action)
      switch action {
      case .open:
        let socket = messages.map { SocketAction.received($0) }
          .handleEvents(receiveCancel: { cancellations.withLock { $0 += 1 } })
          .eraseToEffect().cancellable(id: "socket")
        return [.concatenate(socket, .sync { .closed })]
      case .close:
        return [.cancel(id: "socket")]
      case .received, .closed:
        return []
      }
    }
    messages.send("too early")
    store.send(.open)
    #expect(store.effectsInFlight == 1)
    messages.send("a")
    messages.send("b")
    #expect(store.effectsInFlight == 1)
    store.send(.close)
    messages.send("too late")
    #expect(store.state == [.open, .received("a"), .received("b"), .close, .closed])
    #expect(cancellations.withLock { $0 } == 1)
    #expect(store.effectsInFlight == 0)
  }

  @Test func anEffectThatEndsItselfByIdIsNotKept() {
    let numbers = PassthroughSubject<Int, Never>()
    let store = Store<[Int], Int>(initialState: []) { state, action in
      state.append(action)
      switch action {
      case 0: return [numbers.eraseToEffect().cancellable(id: "n")]
      case 1: return []
      default: return [.cancel(id: "n")]
      }
    }
    store.send(0)
    for number in 1...3 { numbers.send(number) }
    #expect(store.state == [0, 1, 2])
    #expect(store.effectsInFlight == 0)
  }

  @Test func idsInTwoStoresAreDifferentUnlessTheyShareAScope() {
    let numbers = PassthroughSubject<Int, Never>()
    func store(_ scope: EffectScope) -> Store<Int, Int> {
      Store<Int, Int>(initialState: 0, scope: scope) { state, action in
        state = action
        switch action {
        case 0: return [numbers.eraseToEffect().cancellable(id: "n")]
        case -1: return [.cancel(id: "n")]
        default: return []
        }
      }
    }
    let shared = EffectScope()
    let stores = [store(shared), store(shared), store(EffectScope())]
    for store in stores { store.send(0) }
    stores[0].send(-1)
    #expect(stores.map(\.effectsInFlight) == [0, 0, 1])
    numbers.send(7)
    #expect(stores.map(\.state) == [-1, 0, 7])
  }

  @Test func debouncesById() {
    let scheduler = UncheckedBox(ManualScheduler())
    let store = Store<[Int], Int>(initialState: []) { state, action in
      state.append(action)
      return action < 10
        ? [.sync { action * 10 }.debounce(id: "d", for: .milliseconds(5), scheduler: scheduler.value)] : []
    }
    store.send(1)
    store.send(2)
    scheduler.value.advance(by: .milliseconds(4))
    store.send(3)
    scheduler.value.advance(by: .milliseconds(5))
    #expect(store.state == [1, 2, 3, 30])
    #expect(store.effectsInFlight == 0)
  }

  @Test func anEagerFutureIsRunWhenTheEffectIs() {
    let log = EventLog<String>()
    let store = Store<Int, Int>(initialState: 0) { state, action in
      state = action
      guard action == 0 else { return [] }
      let effect = Effect<Int, Never>.future { promise in
        log.append("started")
        promise(.success(7))
      }
      log.append("made")
      return [effect]
    }
    store.send(0)
    #expect(log.events == ["made", "started"])
    #expect(store.state == 7)
  }

  @Test func handsItsEnvironmentToTheReducer() {
    struct Environment: Sendable {
      var next: @Sendable () -> Int
    }
    let store = Store<Int, Bool>(initialState: 0, environment: Environment(next: { 9 })) {
      state, _, environment in
      state = environment.next()
      return []
    }
    store.send(true)
    #expect(store.state == 9)
  }

  @Test func cancelsItsEffectsWhenReleased() {
    let source = PassthroughSubject<Int, Never>()
    let log = EventLog<String>()
    weak var weakStore: Store<Int, Int>?
    do {
      let store = Store<Int, Int>(initialState: 0) { _, _ in
        [source.handleEvents(receiveCancel: { log.append("cancelled") }).eraseToEffect().cancellable(id: 1)]
      }
      weakStore = store
      store.send(0)
      #expect(store.effectsInFlight == 1)
      #expect(store.scope.isInFlight(id: 1))
    }
    #expect(weakStore == nil)
    #expect(log.events == ["cancelled"])
    source.send(1)
  }

  @Test func actionsFromManyThreadsAreWorkedOffOneAtATime() {
    let working = Atomic<Int>(0)
    let store = Store<[Int], Int>(initialState: []) { state, action in
      #expect(working.add(1, ordering: .relaxed).newValue == 1)
      state.append(action)
      working.subtract(1, ordering: .relaxed)
      return action < 10_000 ? [.sync { action + 10_000 }] : []
    }
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      for number in 0..<250 { store.send(thread * 1000 + number) }
    }
    #expect(store.state.count == 2000)
    for thread in 0..<4 {
      let range = thread * 1000..<thread * 1000 + 250
      #expect(store.state.filter { range.contains($0) } == Array(range))
      #expect(store.state.filter { range.contains($0 - 10_000) } == range.map { $0 + 10_000 })
    }
    #expect(store.effectsInFlight == 0)
  }

  @Test func endingByIdRacesWithValuesAndNothingIsKept() {
    for _ in 0..<200 {
      let numbers = PassthroughSubject<Int, Never>()
      let store = Store<Int, Int>(initialState: 0) { state, action in
        state = action
        switch action {
        case 0: return [numbers.eraseToEffect().cancellable(id: "n")]
        default: return []
        }
      }
      store.send(0)
      DispatchQueue.concurrentPerform(iterations: 2) { thread in
        if thread == 0 {
          for number in 1...20 { numbers.send(number) }
        } else {
          store.scope.cancel(id: "n")
        }
      }
      #expect(store.effectsInFlight == 0)
    }
  }
}
