import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AssignToPublishedTests {
  private final class Model {
    @Published var state = 0
  }

  @Test func setsThePropertyToEachValue() {
    let source = ManualPublisher<Int, Never>()
    let model = Model()
    source.assign(to: &model.$state)
    #expect(source.history.take() == [.requested(.unlimited)])
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    model.$state.subscribe(subscriber)
    #expect(source.send(1) == .none)
    #expect(model.state == 1)
    source.send(2)
    #expect(
      subscriber.history.take() == [.subscription("PublishedSubject"), .value(0), .value(1), .value(2)])
  }

  @Test func aFinishLeavesThePropertyAlone() {
    let source = ManualPublisher<Int, Never>()
    let model = Model()
    source.assign(to: &model.$state)
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    model.$state.subscribe(subscriber)
    source.send(1)
    source.send(completion: .finished)
    model.state = 5
    #expect(subscriber.history.events.last == .value(5))
    #expect(source.history.events == [.requested(.unlimited)])
  }

  @Test func isCancelledWhenThePropertyIsReleased() {
    let source = ManualPublisher<Int, Never>()
    do {
      let model = Model()
      source.assign(to: &model.$state)
      source.send(1)
      #expect(source.history.take() == [.requested(.unlimited)])
    }
    #expect(source.history.take() == [.cancelled])
    source.send(2)
  }

  @Test func doesNotKeepTheObjectAlive() {
    weak var released: Model?
    let subject = PassthroughSubject<Int, Never>()
    do {
      let model = Model()
      released = model
      model.$state.filter { $0 < 0 }.assign(to: &model.$state)
      subject.assign(to: &model.$state)
    }
    #expect(released == nil)
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let source = ManualPublisher<Int, Never>()
    let model = Model()
    source.assign(to: &model.$state)
    source.sendSubscription()
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func aFinishedSourceIsReleased() {
    var isReleased = false
    let model = Model()
    do {
      let source = ManualPublisher<Int, Never>()
      source.onDeinit = { isReleased = true }
      source.assign(to: &model.$state)
      source.send(completion: .finished)
      source.forget()
    }
    #expect(isReleased)
  }

  @Test func ignoresValuesAfterTheEnd() {
    let source = ManualPublisher<Int, Never>()
    let model = Model()
    source.assign(to: &model.$state)
    source.send(1)
    source.send(completion: .finished)
    source.send(2)
    #expect(model.state == 1)
  }
}
