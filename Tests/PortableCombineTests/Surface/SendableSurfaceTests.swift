import Foundation
import PortableCombine
import Testing

/// The values that may cross isolations, which the compiler checks, and the rights of code that is isolated to an actor.
@Suite struct SendableSurfaceTests {
  struct Broken: Error, Equatable {}

  /// Accepts only values that may be sent.
  func send<T: Sendable>(_ value: T) {}

  @Test func subjectsOfSendableValues() async {
    let passthrough = PassthroughSubject<Int, Broken>()
    let current = CurrentValueSubject<Int, Never>(1)
    send(passthrough)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { passthrough.send(1) }
      group.addTask { current.send(2) }
    }
    #expect(current.value == 2)
  }

  @Test func cancellables() async {
    let subject = PassthroughSubject<Int, Never>()
    let subscription = subject.sink { _ in }
    await Task.detached { subscription.cancel() }.value
    send(subscription)
  }

  @Test func publishersOfSendableUpstreams() async {
    let erased: AnyPublisher<Int, Never> = [1, 2].publisher.eraseToAnyPublisher()
    let sum = await Task.detached {
      var sum = 0
      _ = erased.sink { sum += $0 }
      return sum
    }.value
    #expect(sum == 3)
    send(erased)
    send(Just(1))
    send(Empty<Int, Never>())
    send(Fail<Int, Broken>(error: Broken()))
    send([1].publisher)
    send(Optional(1).publisher)
    send(Result<Int, Broken>.success(1).publisher)
    send(Record<Int, Broken>(output: [1], completion: .finished))
    send(Future<Int, Never> { $0(.success(1)) })
    send(erased.merge(with: Just(1)))
    send(erased.zip(erased))
    send(erased.combineLatest(erased))
    send(erased.append(1).prepend(2))
    send(erased.dropFirst().first().retry(1))
    send(erased.prefix(2).last().collect())
    send(erased.contains(1).count().ignoreOutput())
    send(erased.receive(on: DispatchQueue.main).subscribe(on: DispatchQueue.main))
    send(erased.share())
    send(erased.delay(for: 1, scheduler: DispatchQueue.main))
    send(erased.values)
    send(Subscribers.Demand.unlimited)
    send(Subscribers.Completion<Broken>.finished)
    send(ImmediateScheduler.shared)
    send(CombineIdentifier())
    send(ObservableObjectPublisher())
  }

  @Test func promisesMayBeKeptElsewhere() async {
    let future = Future<Int, Never> { promise in
      Task.detached { promise(.success(1)) }
    }
    #expect(await future.value == 1)
  }

  @MainActor final class Model: ObservableObject {
    @Published var text = ""
    @Published private(set) var count = 0
    private var bag: Set<AnyCancellable> = []

    func start() {
      $text.map(\.count).removeDuplicates().assign(to: &$count)
      $text.dropFirst().sink { [weak self] in self?.note($0) }.store(in: &bag)
    }

    private(set) var notes: [String] = []

    private func note(_ text: String) { notes.append(text) }
  }

  @MainActor @Test func aModelOnTheMainActor() async {
    let model = Model()
    model.start()
    model.text = "ab"
    #expect(model.count == 2 && model.notes == ["ab"])
    var changes = 0
    let subscription = model.objectWillChange.sink { changes += 1 }
    model.text = "c"
    #expect(changes == 2)
    subscription.cancel()
    for await text in model.$text.values {
      #expect(text == "c")
      break
    }
  }

  actor Collector {
    private(set) var values: [Int] = []

    func collect(_ publisher: AnyPublisher<Int, Never>) async {
      for await value in publisher.values { values.append(value) }
    }
  }

  @Test func anActorIteratesAPublisherItIsGiven() async {
    let collector = Collector()
    await collector.collect([1, 2, 3].publisher.eraseToAnyPublisher())
    #expect(await collector.values == [1, 2, 3])
  }
}
