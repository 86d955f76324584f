import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Testing

/// This module's operators and subscribers, with upstreams that send within the call of `request(_:)`.
@Suite struct SynchronousUpstreamTests {
  final class Model {
    @Published var number = 1
  }

  /// Upstreams that send one value within the call that subscribes to them.
  static func upstreams() -> [(name: String, publisher: AnyPublisher<Int, Never>)] {
    [
      ("Just", Just(1).eraseToAnyPublisher()), ("Sequence", [1].publisher.eraseToAnyPublisher()),
      ("CurrentValueSubject", CurrentValueSubject<Int, Never>(1).eraseToAnyPublisher()),
      ("Published", Model().$number.eraseToAnyPublisher()),
    ]
  }

  @Test func operatorsLoseNothing() {
    for (name, upstream) in Self.upstreams() {
      let results: [(name: String, publisher: AnyPublisher<Int, Never>)] = [
        ("unwrap", upstream.map { Optional($0) }.unwrap().eraseToAnyPublisher()),
        ("share(replay: 0)", upstream.share(replay: 0).eraseToAnyPublisher()),
        ("share(replay: 1)", upstream.share(replay: 1).eraseToAnyPublisher()),
        (
          "share(replay: 1, scope: .forever)",
          upstream.share(replay: 1, scope: .forever).eraseToAnyPublisher()
        ),
        ("eraseToEffect", upstream.eraseToEffect().eraseToAnyPublisher()),
      ]
      for (operation, result) in results {
        for demand in [Subscribers.Demand.unlimited, .max(1)] {
          let subscriber = TrackingSubscriber<Int, Never>(demand)
          result.subscribe(subscriber)
          #expect(subscriber.history.events.contains(.value(1)), "\(operation) of \(name), \(demand)")
          subscriber.subscription?.cancel()
        }
      }
    }
  }

  @Test func aPausableSinkLosesNothing() {
    for (name, upstream) in Self.upstreams() {
      var values: [Int] = []
      let sink = upstream.pausableSink {
        values.append($0)
        return true
      }
      #expect(values == [1], "\(name)")
      sink.cancel()
    }
  }
}
