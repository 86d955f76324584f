import ReactiveCore
import ReactiveTestSupport
import Testing

/// Every operator with an upstream that sends values or a completion before its subscription.
@Suite struct EarlyCallTests {
  static func run(
    _ subject: OperatorCase, _ position: Int, othersEndFirst: Bool, early: [Subscribers.Completion<Oops>?]
  ) -> [Happening] {
    let pipeline = LateUpstreamTests.Pipeline(subject, late: position, demand: .unlimited)
    let others = pipeline.others(than: position)
    if othersEndFirst {
      others.open()
      others.end()
      pipeline.settle()
    }
    let source = pipeline.sources[position]
    for call in early { source.sendTooEarly(call) }
    pipeline.settle()
    source.connect()
    pipeline.settle()
    source.open()
    source.end()
    pipeline.settle()
    others.open()
    others.end()
    pipeline.settle()
    return pipeline.outcome.events
  }

  @Test(arguments: OperatorCase.all)
  func whatComesBeforeTheSubscriptionIsIgnored(subject: OperatorCase) {
    for position in 0..<subject.upstreams {
      for othersEndFirst in [false, true] {
        let orderly = Self.run(subject, position, othersEndFirst: othersEndFirst, early: [])
        for early in [[nil], [.finished], [.failure(Oops())], [nil, .finished, nil]]
          as [[Subscribers.Completion<Oops>?]]
        {
          // The failure would end the program in these, which is what they are for.
          if subject.passesEverything { continue }
          let events = Self.run(subject, position, othersEndFirst: othersEndFirst, early: early)
          if subject.name == "flatMap(maxPublishers:_:)", subject.detail == "inner" {
            withKnownIssue(
              "flatMap takes what an inner publisher sends before its subscription", isIntermittent: true
            ) {
              #expect(events == orderly, "upstream \(position), \(early)")
            }
          } else {
            #expect(events == orderly, "upstream \(position), \(early)")
          }
        }
      }
    }
  }

  /// Operators without a state of their own pass the call on, to be ignored further down.
  @Test(arguments: OperatorCase.all.filter(\.passesEverything))
  func statelessOperatorsPassOnWhatComesBeforeTheSubscription(subject: OperatorCase) {
    let orderly = Self.run(subject, 0, othersEndFirst: false, early: [])
    let events = Self.run(subject, 0, othersEndFirst: false, early: [nil])
    #expect(events.count == orderly.count + 1)
  }

  #if DEBUG
    @Test func theProgramIsToldOnceForEachOperatorAndMistake() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        for _ in 0..<3 {
          let rig = Rig<Int, Oops, _>(subscribesAtOnce: false) { $0.filter { _ in true } }
          rig.source.send(1)
          rig.source.send(completion: .finished)
        }
      }
      let text = result.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
      for mistake in ["a value before a subscription", "a completion before a subscription"] {
        let line = "Filter: the publisher has sent \(mistake), which was ignored"
        #expect(text.split(separator: "\n").count { $0 == line } == 1)
      }
    }
  #endif
}
