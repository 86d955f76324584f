import ReactiveCore

// What one more link of a pipeline costs.
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

  /// A pipeline whose boundaries the compiler can't see through, because it is built at run time.
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
    CombineScenario("sequence → \(name) → sink", target: target, values: count) {
      {
        let total = Total()
        let cancellable = make((0..<count).publisher).sink { total.sum &+= $0 }
        keep(total.sum)
        cancellable.cancel()
      }
    }
  }
}
