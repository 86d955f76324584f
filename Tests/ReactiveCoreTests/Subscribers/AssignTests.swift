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
}
