import ReactiveCore
import ReactiveTestSupport
import Synchronization
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
          // In these operators, the failure would end the program, as they intend.
          if subject.passesEverything { continue }
          let events = Self.run(subject, position, othersEndFirst: othersEndFirst, early: early)
          #expect(events == orderly, "upstream \(position), \(early)")
        }
      }
    }
  }

  /// Operators without a state of their own pass the call on, and a later operator or the subscriber ignores it.
  @Test(arguments: OperatorCase.all.filter(\.passesEverything))
  func statelessOperatorsPassOnWhatComesBeforeTheSubscription(subject: OperatorCase) {
    let orderly = Self.run(subject, 0, othersEndFirst: false, early: [])
    let events = Self.run(subject, 0, othersEndFirst: false, early: [nil, .finished])
    #expect(events.count == orderly.count + (subject.name == "ignoreOutput()" ? 1 : 2))
  }

  #if DEBUG
    /// Every operator with state reports the calls that it ignores, in each position.
    @Test(arguments: OperatorCase.all.filter { !$0.passesEverything })
    func theProgramIsToldWhatIsIgnored(subject: OperatorCase) {
      let mistakes: [(call: Subscribers.Completion<Oops>?, name: String)] = [
        (nil, "a value before a subscription"), (.finished, "a completion before a subscription"),
        (.failure(Oops()), "a completion before a subscription"),
      ]
      var calls = 0
      for position in 0..<subject.upstreams {
        for othersEndFirst in [false, true] {
          for mistake in mistakes {
            let pipeline = LateUpstreamTests.Pipeline(subject, late: position, demand: .unlimited)
            if othersEndFirst {
              pipeline.others(than: position).open()
              pipeline.others(than: position).end()
              pipeline.settle()
            }
            let source = pipeline.sources[position]
            // An operator that has ended, or that doesn't need the upstream yet, can't report it.
            if !source.isSubscribed || pipeline.outcome.events.last == .finished { continue }
            calls += 1
            let lines = Mutex<[String]>([])
            Violation.$observer.withValue({ line in lines.withLock { $0.append(line) } }) {
              source.sendTooEarly(mistake.call)
              pipeline.settle()
            }
            let reports = lines.withLock { $0 }
            #expect(reports.count == 1, "upstream \(position), \(mistake.name): \(reports)")
            #expect(reports.first?.contains(mistake.name) == true, "upstream \(position): \(reports)")
          }
        }
      }
      #expect(calls >= 3 * subject.upstreams)
    }

    @Test func theProgramIsToldOnceForEachOperatorAndMistake() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        for _ in 0..<3 {
          let rig = Rig<Int, Oops, _>(subscribesAtOnce: false) { $0.tryFilter { _ in true } }
          rig.source.send(1)
          rig.source.send(completion: .finished)
        }
      }
      let text = result.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
      for mistake in ["a value before a subscription", "a completion before a subscription"] {
        let line = "TryFilter: the publisher has sent \(mistake), which was ignored"
        #expect(text.split(separator: "\n").count { $0 == line } == 1)
      }
    }
  #endif
}
