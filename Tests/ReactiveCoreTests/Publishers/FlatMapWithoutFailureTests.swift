import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FlatMapWithoutFailureTests {
  @Test func anUpstreamThatCannotFailTakesTheFailureOfItsChildren() {
    let publisher = [1, 2].publisher.flatMap(maxPublishers: .max(1)) { number in
      number == 1
        ? Result<Int, Oops>.Publisher(.success(number))
        : Result<Int, Oops>.Publisher(.failure(Oops(number: 7)))
    }
    #expect(publisher.maxPublishers == .max(1))
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    publisher.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("FlatMap"), .value(1), .failed(Oops(number: 7))])
  }

  @Test func childrenThatCannotFailTakeTheFailureOfUpstream() {
    let rig = Rig { $0.flatMap { Just($0 * 2) } }
    rig.source.send(4)
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(
      rig.take() == [
        .subscription("FlatMap"), .requested(.unlimited), .value(8), .failed(Oops(number: 1)),
      ])
  }

  @Test func withoutAnyFailureNothingIsConverted() {
    let publisher = [1, 2].publisher.flatMap { Just($0 * 2) }
    #expect(type(of: publisher) == Publishers.FlatMap<Just<Int>, Publishers.Sequence<[Int], Never>>.self)
    var values: [Int] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == [2, 4])
  }
}
