import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AssignTests {
  final class Target {
    var number = 0
    var onDeinit: () -> Void = {}
    deinit { onDeinit() }
  }

  @Test func writesEachValue() {
    let source = ManualPublisher<Int, Never>()
    let target = Target()
    let subscription = source.assign(to: \.number, on: target)
    #expect(source.history.take() == [.requested(.unlimited)])
    source.send(5)
    #expect(target.number == 5)
    subscription.cancel()
    source.send(6)
    #expect(target.number == 5)
    #expect(source.history.take() == [.cancelled])
  }

  @Test func letsGoOfTheObjectAtTheEnd() {
    for end in [End.finish, .cancel] {
      var isReleased = false
      let source = ManualPublisher<Int, Never>()
      let assign: Subscribers.Assign<Target, Int>
      do {
        let target = Target()
        target.onDeinit = { isReleased = true }
        assign = Subscribers.Assign(object: target, keyPath: \.number)
      }
      source.subscribe(assign)
      #expect(!isReleased)
      #expect(assign.object != nil)
      if end == .finish { source.send(completion: .finished) } else { assign.cancel() }
      #expect(isReleased)
      #expect(assign.object == nil)
    }
  }

  @Test func ignoresValuesBeforeAndCancelsASecondSubscription() {
    let source = ManualPublisher<Int, Never>()
    source.subscribesAtOnce = false
    let target = Target()
    let assign = Subscribers.Assign(object: target, keyPath: \.number)
    source.subscribe(assign)
    source.send(1)
    #expect(target.number == 0)
    source.sendSubscription()
    source.sendSubscription()
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
    #expect(assign.description == "Assign Target.")
  }

  @Test func aSourceMayDeliverEverythingWithinTheRequest() {
    let target = Target()
    _ = [1, 2].publisher.eraseToAnyPublisher().assign(to: \.number, on: target)
    #expect(target.number == 2)
  }

  final class SelfSender {
    let subject = PassthroughSubject<Int, Never>()
    var subscription: AnyCancellable?
    var numbers: [Int] = []
    var number = 0 {
      didSet {
        numbers.append(number)
        if number < 3 { subject.send(number + 1) } else { subscription?.cancel() }
      }
    }
  }

  @Test func thePropertyMaySendToItsSourceAndCancel() {
    let sender = SelfSender()
    sender.subscription = sender.subject.assign(to: \.number, on: sender)
    sender.subject.send(1)
    sender.subject.send(9)
    #expect(sender.numbers == [1, 2, 3])
  }
}
