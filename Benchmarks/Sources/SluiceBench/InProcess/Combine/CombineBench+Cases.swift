import CLinux
import Dispatch
import Glibc
import ReactiveCore
import ReactiveFoundation

// The cost of one more link of a pipeline.
extension CombineBench {
  static var links: [CombineScenario] {
    [
      passing("map, 5 times", target: nil) {
        $0.map { $0 &+ 1 }.filter { $0 != 0 }.map { $0 &+ 1 }.filter { $0 != 0 }.map { $0 &+ 1 }
      },
      passing("erase and map, 5 times", target: 30) { erasedAndMapped($0.eraseToAnyPublisher(), times: 5) },
      passing("handleEvents without a function for values", target: 10) {
        $0.handleEvents(receiveCancel: {})
      },
      passing("handleEvents with a function for values", target: 20) {
        let total = Total()
        return $0.handleEvents(receiveOutput: { total.sum &+= $0 })
      },
    ]
  }

  /// A pipeline that is built at run time, so that the compiler can't optimise across its operators.
  private static func erasedAndMapped(
    _ publisher: AnyPublisher<Int, Never>, times: Int
  ) -> AnyPublisher<Int, Never> {
    (0..<times).reduce(publisher) { publisher, number in
      publisher.map { $0 &+ number }.eraseToAnyPublisher()
    }
  }

  private static func passing<P: Publisher>(
    _ name: String, target: Double?, _ make: @escaping (Publishers.Sequence<Range<Int>, Never>) -> P
  ) -> CombineScenario where P.Output == Int, P.Failure == Never {
    running("sequence → \(name) → sink", target: target) { total in
      make((0..<count).publisher).sink { total.sum &+= $0 }
    }
  }
}

// Operators with several upstreams.
extension CombineBench {
  static var combining: [CombineScenario] {
    [
      CombineScenario("merge of four subjects → sink", target: 30, values: 4) {
        let subjects = (0..<4).map { _ in PassthroughSubject<Int, Never>() }
        let total = Total()
        let cancellable = subjects[0].merge(with: subjects[1], subjects[2], subjects[3])
          .sink { total.sum &+= $0 }
        return {
          for subject in subjects { subject.send(1) }
          withExtendedLifetime(cancellable) { keep(total.sum) }
        }
      },
      running("merge of four sequences → sink", target: 30, values: 4 * count) { total in
        Publishers.Merge4(
          (0..<count).publisher, (0..<count).publisher, (0..<count).publisher, (0..<count).publisher
        ).sink { total.sum &+= $0 }
      },
      running("zip of two sequences → sink, a pair", target: 60) { total in
        (0..<count).publisher.zip((0..<count).publisher).sink { total.sum &+= $0 &+ $1 }
      },
      CombineScenario("combineLatest of two subjects → sink", target: 60, values: 2) {
        let (first, second) = (PassthroughSubject<Int, Never>(), PassthroughSubject<Int, Never>())
        let total = Total()
        let cancellable = first.combineLatest(second).sink { total.sum &+= $0 &+ $1 }
        return {
          first.send(1)
          second.send(2)
          withExtendedLifetime(cancellable) { keep(total.sum) }
        }
      },
    ]
  }
}

// Scheduling from one thread to another.
extension CombineBench {
  static var scheduling: [CombineScenario] {
    [
      // Counts the time of all threads, since the queue's thread does most of the work.
      CombineScenario(
        "PassthroughSubject → receive(on: DispatchQueue) → sink", target: 250, values: count,
        clock: CLOCK_PROCESS_CPUTIME_ID
      ) {
        let subject = PassthroughSubject<Int, Never>()
        let total = Total()
        let hasArrived = DispatchSemaphore(value: 0)
        let queue = DispatchQueue(label: "sluice-bench")
        let cancellable = subject.receive(on: queue).sink { number in
          total.sum &+= number
          if number == 0 { hasArrived.signal() }
        }
        queue.sync {}  // the subscription arrives on the queue, too
        return {
          for number in (0..<count).reversed() { subject.send(number) }
          hasArrived.wait()
          withExtendedLifetime(cancellable) { keep(total.sum) }
        }
      }
    ]
  }
}
