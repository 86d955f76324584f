import ReactiveCore

/// The cost of a value in the Combine core.
enum CombineBench {
  static func cases() -> [MicroCase] {
    let groups = [
      ("from a sequence", sequences), ("from a subject", subjects), ("operators that hold values", holders),
      ("operators with several upstreams", combining),
      ("one more link", links), ("subscribing", subscribing),
      ("subscribing from several threads", contention),
      ("from thread to thread", scheduling),
    ]
    return groups.flatMap { title, scenarios in
      scenarios.map { scenario in
        MicroCase("combine: \(title)", scenario.name) { scenario.run($0) }
      }
    }
  }

  /// The number of values that a round of the cheaper scenarios delivers.
  static let count = 10_000
}

// Sequences.
extension CombineBench {
  private static var sequences: [CombineScenario] {
    [
      CombineScenario("a plain loop that maps and filters", target: nil, values: count) {
        {
          var sum = 0
          for number in 0..<count {
            let product = number &* 3
            if product & 1 == 0 { sum &+= product }
            keep(sum)
          }
        }
      },
      running("sequence → map → filter → sink", target: 15) { total in
        (0..<count).publisher.map { $0 &* 3 }.filter { $0 & 1 == 0 }.sink { total.sum &+= $0 }
      },
      running("the same, erased five times", target: 30) { total in
        (0..<count).publisher
          .eraseToAnyPublisher()
          .map { $0 &* 3 }
          .eraseToAnyPublisher()
          .eraseToAnyPublisher()
          .filter { $0 & 1 == 0 }
          .eraseToAnyPublisher()
          .eraseToAnyPublisher()
          .sink { total.sum &+= $0 }
      },
      stepping("sequence → subscriber, .max(1) a value", target: 25) { (0..<count).publisher },
    ]
  }
}

extension CombineBench {
  /// A scenario that builds a pipeline with a sink in each round. The sink has all values when the function returns.
  static func running(
    _ name: String, target: Double?, values: Int = count, _ subscribe: @escaping (Total) -> AnyCancellable
  ) -> CombineScenario {
    CombineScenario(name, target: target, values: values) {
      {
        let total = Total()
        let cancellable = subscribe(total)
        keep(total.sum)
        cancellable.cancel()
      }
    }
  }

  /// A scenario in which a subscriber requests a publisher's values one by one in each round.
  private static func stepping<P: Publisher>(
    _ name: String, target: Double?, _ make: @escaping () -> P
  ) -> CombineScenario where P.Output == Int, P.Failure == Never {
    CombineScenario(name, target: target, values: count) {
      {
        let subscriber = StepSubscriber()
        make().subscribe(subscriber)
        keep(subscriber.sum)
      }
    }
  }
}

// Subjects.
extension CombineBench {
  private static func passthrough() -> PassthroughSubject<Int, Never> { PassthroughSubject() }
  private static func currentValue() -> CurrentValueSubject<Int, Never> { CurrentValueSubject(0) }

  private static var subjects: [CombineScenario] {
    [
      sending("PassthroughSubject → 1 sink", target: 25, to: 1, passthrough) { $0 },
      sending("PassthroughSubject → 100 sinks, a delivery", target: 10, to: 100, passthrough) { $0 },
      CombineScenario("PassthroughSubject → subscriber, .max(1) a value", target: 25, values: 1) {
        let subject = PassthroughSubject<Int, Never>()
        let subscriber = StepSubscriber()
        subject.subscribe(subscriber)
        return {
          subject.send(1)
          keep(subscriber.sum)
        }
      },
      sending("CurrentValueSubject → 1 sink", target: 30, to: 1, currentValue) { $0 },
      sending("CurrentValueSubject → 100 sinks, a delivery", target: nil, to: 100, currentValue) { $0 },
      sending("PassthroughSubject → share() → 10 sinks, a delivery", target: 15, to: 10, passthrough) {
        $0.share()
      },
    ]
  }

  /// A scenario that sends values to a subject. Its publisher has that many sinks.
  private static func sending<S: Subject, P: Publisher>(
    _ name: String, target: Double?, to sinks: Int, _ make: @escaping () -> S, _ publisher: @escaping (S) -> P
  ) -> CombineScenario where S.Output == Int, S.Failure == Never, P.Output == Int, P.Failure == Never {
    CombineScenario(name, target: target, values: sinks) {
      let subject = make()
      let publisher = publisher(subject)
      let total = Total()
      let cancellables = (0..<sinks).map { _ in publisher.sink { total.sum &+= $0 } }
      return {
        subject.send(1)
        withExtendedLifetime(cancellables) { keep(total.sum) }
      }
    }
  }
}

// Operators that retain values or other publishers.
extension CombineBench {
  private static var holders: [CombineScenario] {
    [
      running("sequence → flatMap(Just) → sink", target: 80) { total in
        (0..<count).publisher.flatMap { Just($0) }.sink { total.sum &+= $0 }
      },
      running("sequence → buffer(1000) → sink", target: 50) { total in
        (0..<count).publisher.buffer(size: 1000, prefetch: .keepFull, whenFull: .dropNewest)
          .sink { total.sum &+= $0 }
      },
      stepping("sequence → buffer(1000) → subscriber, .max(1) a value", target: 50) {
        (0..<count).publisher.buffer(size: 1000, prefetch: .keepFull, whenFull: .dropNewest)
      },
    ]
  }
}

// Subscribing and cancelling.
extension CombineBench {
  private static var subscribing: [CombineScenario] {
    [
      CombineScenario("sink and cancel, at a subject with 10,000 sinks", target: 1000, values: 1) {
        let subject = PassthroughSubject<Int, Never>()
        let total = Total()
        let cancellables = (0..<10_000).map { _ in subject.sink { total.sum &+= $0 } }
        return {
          subject.sink { total.sum &+= $0 }.cancel()
          withExtendedLifetime(cancellables) {}
        }
      }
    ]
  }
}

/// The sum of a scenario's values.
final class Total {
  @exclusivity(unchecked) var sum = 0  // one thread at a time
}

/// Requests one value, and one more after each.
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
