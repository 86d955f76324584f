import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct SinkTests {
  final class Token {}

  @Test func asksForEverythingAndHandsOver() {
    let source = ManualPublisher<Int, Oops>()
    var values: [Int] = []
    var completions: [Subscribers.Completion<Oops>] = []
    let subscription = source.sink {
      completions.append($0)
    } receiveValue: {
      values.append($0)
    }
    #expect(source.send(1) == .none)
    source.send(2)
    source.send(completion: .failure(Oops()))
    source.send(3)
    source.send(completion: .finished)
    #expect(values == [1, 2])
    #expect(completions == [.failure(Oops())])
    #expect(source.history.events == [.requested(.unlimited)])
    subscription.cancel()
    #expect(source.history.events == [.requested(.unlimited)])
  }

  @Test func cancelsOnceAndThenIgnoresEverything() {
    let source = ManualPublisher<Int, Never>()
    var values: [Int] = []
    let subscription = source.sink { values.append($0) }
    source.send(1)
    subscription.cancel()
    subscription.cancel()
    source.send(2)
    #expect(values == [1])
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func cancelsWhenReleased() {
    let source = ManualPublisher<Int, Never>()
    do {
      let subscription = source.sink { _ in }
      withExtendedLifetime(subscription) {}
    }
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func cancelsASecondSubscription() {
    let source = ManualPublisher<Int, Never>()
    let subscription = source.sink { _ in }
    source.sendSubscription()
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
    subscription.cancel()
  }

  @Test func cancelledBeforeItsSubscriptionItCancelsIt() {
    let source = ManualPublisher<Int, Never>()
    source.subscribesAtOnce = false
    let subscription = source.sink { _ in }
    subscription.cancel()
    source.sendSubscription()
    #expect(source.history.events == [.cancelled])
  }

  enum Ending: CaseIterable { case completion, cancellation, cancellationWithinValue, release }

  @Test(arguments: Ending.allCases) func releasesItsFunctions(ending: Ending) {
    weak var token: Token?
    do {
      let strong = Token()
      token = strong
      let source = ManualPublisher<Int, Never>()
      var sink: Subscribers.Sink<Int, Never>?
      sink = Subscribers.Sink(receiveCompletion: { _ in withExtendedLifetime(strong) {} }) {
        [weak source] _ in
        withExtendedLifetime((strong, source)) {}
      }
      source.subscribe(sink!)
      let canceller = sink
      switch ending {
      case .completion: source.send(completion: .finished)
      case .cancellation: canceller?.cancel()
      case .cancellationWithinValue:
        let other = Subscribers.Sink<Int, Never>(receiveCompletion: { _ in }) { _ in canceller?.cancel() }
        other.receive(subscription: ManualSubscription())
        _ = other.receive(1)
        other.cancel()
      case .release:
        source.forget()
        sink = nil
        return
      }
      withExtendedLifetime(strong) {}
      source.forget()
      _ = sink?.receive(2)
      sink?.receive(completion: .finished)
    }
    #expect(token == nil)
  }

  @Test func keepsTheFunctionsWhileAValueUsesThem() {
    weak var token: Token?
    let sink: Subscribers.Sink<Int, Never>
    do {
      let strong = Token()
      token = strong
      var cancel: () -> Void = {}
      sink = Subscribers.Sink(receiveCompletion: { _ in }) { _ in
        cancel()
        withExtendedLifetime(strong) {}
      }
      cancel = { [unowned sink] in sink.cancel() }
    }
    sink.receive(subscription: ManualSubscription())
    #expect(token != nil)
    _ = sink.receive(1)
    #expect(token == nil)
  }

  @Test func valuesAndCancellationMayRace() async {
    for _ in 0..<300 {
      let sink = UncheckedBox(Subscribers.Sink<[Int], Never>(receiveCompletion: { _ in }) { _ in })
      sink.value.receive(subscription: ManualSubscription())
      async let sending: Void = { for value in 0..<50 { _ = sink.value.receive([value]) } }()
      async let cancelling: Void = sink.value.cancel()
      _ = await (sending, cancelling)
    }
  }

  @Test func describesItself() {
    let sink = Subscribers.Sink<Int, Never>(receiveCompletion: { _ in }) { _ in }
    #expect(sink.description == "Sink")
    #expect(sink.playgroundDescription as? String == "Sink")
    #expect(Mirror(reflecting: sink).children.isEmpty)
  }

  @Test func aSourceMayDeliverEverythingWithinTheRequest() {
    var log: [String] = []
    _ = [1, 2].publisher.eraseToAnyPublisher().sink {
      log.append("\($0)")
    } receiveValue: {
      log.append("\($0)")
    }
    #expect(log == ["1", "2", "finished"])
  }

  @Test func itsFunctionMaySendToItsSourceAndCancel() {
    let subject = PassthroughSubject<Int, Never>()
    var values: [Int] = []
    var subscription: AnyCancellable?
    subscription = subject.sink {
      values.append($0)
      if $0 < 3 { subject.send($0 + 1) } else { subscription?.cancel() }
      values.append(-$0)
    }
    subject.send(1)
    subject.send(9)
    #expect(values == [1, -1, 2, -2, 3, -3])
  }
}
