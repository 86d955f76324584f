import ReactiveCore

/// What a value costs on its way through the Combine core.
enum CoreBench {
  private static let count = 10_000

  static func cases() -> [MicroCase] {
    sequences() + subjects()
  }

  private static func sequences() -> [MicroCase] {
    let table = "core, \(count) numbers"
    return [
      MicroCase(table, "a plain loop that maps and filters") { seconds in
        perValue(seconds) {
          var sum = 0
          for number in 0..<count {
            let product = number &* 3
            if product & 1 == 0 { sum &+= product }
            keep(sum)
          }
        }
      },
      MicroCase(table, "sequence → map → filter → sink") { seconds in
        perValue(seconds) {
          var sum = 0
          let cancellable = (0..<count).publisher
            .map { $0 &* 3 }
            .filter { $0 & 1 == 0 }
            .sink { sum &+= $0 }
          keep(sum)
          cancellable.cancel()
        }
      },
      MicroCase(table, "sequence → map → filter → AnyPublisher → sink") { seconds in
        perValue(seconds) {
          var sum = 0
          let cancellable = (0..<count).publisher
            .map { $0 &* 3 }
            .filter { $0 & 1 == 0 }
            .eraseToAnyPublisher()
            .sink { sum &+= $0 }
          keep(sum)
          cancellable.cancel()
        }
      },
      MicroCase(table, "sequence → subscriber, .max(1) a value") { seconds in
        perValue(seconds) {
          let subscriber = StepSubscriber()
          (0..<count).publisher.subscribe(subscriber)
          keep(subscriber.sum)
        }
      },
    ]
  }

  private static func subjects() -> [MicroCase] {
    let table = "core, PassthroughSubject"
    let send = Column("ns/send")
    var cases = [1, 100].map { sinks in
      MicroCase(table, "\(sinks) sink\(sinks == 1 ? "" : "s")") { seconds in
        let subject = PassthroughSubject<Int, Never>()
        var sum = 0
        let cancellables = (0..<sinks).map { _ in subject.sink { sum &+= $0 } }
        let time = Stopwatch.nanoseconds(for: seconds) { subject.send(1) }
        keep(sum)
        for cancellable in cancellables { cancellable.cancel() }
        return [Reading(.perValue, time / Double(sinks)), Reading(send, time)]
      }
    }
    cases.append(
      MicroCase(table, "1 subscriber, .max(1) a value") { seconds in
        let subject = PassthroughSubject<Int, Never>()
        let subscriber = StepSubscriber()
        subject.subscribe(subscriber)
        let time = Stopwatch.nanoseconds(for: seconds) { subject.send(1) }
        keep(subscriber.sum)
        return [Reading(.perValue, time), Reading(send, time)]
      })
    return cases
  }

  private static func perValue(_ seconds: Double, _ body: () -> Void) -> [Reading] {
    [Reading(.perValue, Stopwatch.nanoseconds(for: seconds, body) / Double(count))]
  }
}

/// Asks for one value, and with each for one more.
private final class StepSubscriber: Subscriber {
  typealias Input = Int
  typealias Failure = Never

  private(set) var sum = 0

  func receive(subscription: any Subscription) {
    subscription.request(.max(1))
  }

  func receive(_ input: Int) -> Subscribers.Demand {
    sum &+= input
    return .max(1)
  }

  func receive(completion: Subscribers.Completion<Never>) {}
}

extension Column {
  fileprivate static let perValue = Column("ns/value")
}
