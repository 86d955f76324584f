import ReactiveCore

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
      CombineScenario("merge of four sequences → sink", target: 30, values: 4 * count) {
        {
          let total = Total()
          let cancellable = Publishers.Merge4(
            (0..<count).publisher, (0..<count).publisher, (0..<count).publisher, (0..<count).publisher
          )
          .sink { total.sum &+= $0 }
          keep(total.sum)
          cancellable.cancel()
        }
      },
      CombineScenario("zip of two sequences → sink, a pair", target: 60, values: count) {
        {
          let total = Total()
          let cancellable = (0..<count).publisher.zip((0..<count).publisher)
            .sink { total.sum &+= $0 &+ $1 }
          keep(total.sum)
          cancellable.cancel()
        }
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
