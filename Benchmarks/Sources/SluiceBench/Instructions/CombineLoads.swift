import CombineExtras
import ReactiveCore

/// The cost of values in the Combine core.
enum CombineLoads {
  private static let count = 50_000

  static var all: [FixedLoad] {
    [
      load("sequence, map, filter, sink") { sum in
        (0..<count).publisher.map { $0 &* 3 }.filter { $0 & 1 == 0 }.sink { sum.add($0) }
      },
      load("the same, erased five times") { sum in
        (0..<count).publisher.eraseToAnyPublisher().map { $0 &* 3 }.eraseToAnyPublisher()
          .eraseToAnyPublisher()
          .filter { $0 & 1 == 0 }.eraseToAnyPublisher().eraseToAnyPublisher().sink { sum.add($0) }
      },
      load("flatMap of Just") { sum in
        (0..<count).publisher.flatMap { Just($0) }.sink { sum.add($0) }
      },
      load("scan, removeDuplicates, prefix") { sum in
        (0..<count).publisher.scan(0) { $0 &+ $1 }.removeDuplicates().prefix(count).sink { sum.add($0) }
      },
      load("handleEvents without closures") { sum in
        (0..<count).publisher.handleEvents().sink { sum.add($0) }
      },
      sending("subject to a sink") { $0.eraseToAnyPublisher() },
      sending("subject, merge with another") {
        $0.merge(with: PassthroughSubject<Int, Never>()).eraseToAnyPublisher()
      },
      sending("subject, combineLatest with a current value") {
        $0.combineLatest(CurrentValueSubject<Int, Never>(1)).map { $0 &+ $1 }.eraseToAnyPublisher()
      },
      sending("subject, zip with itself") { $0.zip($0).map { $0 &+ $1 }.eraseToAnyPublisher() },
      sending("subject, buffer") {
        $0.buffer(size: 16, prefetch: .byRequest, whenFull: .dropOldest).eraseToAnyPublisher()
      },
      sending("subject, share with a replay of 1") { $0.share(replay: 1).eraseToAnyPublisher() },
      FixedLoad(name: "combine: subscribe and cancel", unit: "subscription", units: 20_000) {
        let subject = PassthroughSubject<Int, Never>()
        return { for _ in 0..<20_000 { subject.map { $0 &+ 1 }.sink { keep($0) }.cancel() } }
      },
    ]
  }

  private static func load(_ name: String, _ subscribe: @escaping (Sum) -> AnyCancellable) -> FixedLoad {
    FixedLoad(name: "combine: \(name)", unit: "value", units: count) {
      let sum = Sum()
      subscribe(sum).cancel()
      return {
        subscribe(sum).cancel()
        keep(sum.value)
      }
    }
  }

  private static func sending(
    _ name: String, _ make: @escaping (PassthroughSubject<Int, Never>) -> AnyPublisher<Int, Never>
  ) -> FixedLoad {
    FixedLoad(name: "combine: \(name)", unit: "value", units: count) {
      let subject = PassthroughSubject<Int, Never>()
      let sum = Sum()
      let cancellable = make(subject).sink { sum.add($0) }
      subject.send(0)
      return {
        for value in 0..<count { subject.send(value) }
        keep(sum.value)
        cancellable.cancel()
      }
    }
  }

  private final class Sum: @unchecked Sendable {  // used by the measuring thread alone
    private(set) var value = 0

    @inline(__always)
    func add(_ more: Int) {
      value &+= more
    }
  }
}
