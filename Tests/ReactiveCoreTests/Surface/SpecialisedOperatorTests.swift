import ReactiveCore
import ReactiveTestSupport
import Testing

/// Compares every operator that `Just`, `Optional`, `Result`, `Sequence`, `Empty` or `Fail` declares for itself with the general operator on the same
/// publisher.
///
/// Their events are the same, with one inherent difference of the eager operators. A result that is known to have no values, or no more, completes at
/// once; the general operator must request from upstream first.
@Suite struct SpecialisedOperatorTests {
  @Test(arguments: SpecialisedCase.all)
  func aSpecialisedOperatorDoesWhatTheGeneralOneDoes(subject: SpecialisedCase) {
    for (index, pair) in subject.pairs().enumerated() {
      #expect(pair.isSpecialised)
      let everything = Schedule(first: .unlimited)
      let expected = subject.asCombine[index] ?? everything.run(pair.general).flatMap { $0 }
      #expect(everything.run(pair.special) == [expected], "\(pair.upstream)")
      if subject.asCombine[index] != nil {
        #expect(everything.run(pair.general) != [expected], "\(pair.upstream) is no exception")
        continue
      }
      for schedule in Schedule.all {
        let special = schedule.run(pair.special)
        let general = schedule.run(pair.general)
        if special == general { continue }
        #expect(
          Self.isTheSameButForAnEarlyEnd(special, general, ending: expected.last!),
          "\(pair.upstream), \(schedule): \(special), general: \(general)")
      }
    }
  }

  /// Whether two histories have the same values at the same time, and the first ends no later than the second.
  static func isTheSameButForAnEarlyEnd(_ special: [[String]], _ general: [[String]], ending: String) -> Bool
  {
    var (specialHasEnded, generalHasEnded) = (false, false)
    for (var special, var general) in zip(special, general) {
      if special.last == ending {
        guard !specialHasEnded else { return false }
        specialHasEnded = true
        special.removeLast()
      }
      if general.last == ending {
        generalHasEnded = true
        general.removeLast()
      }
      if special != general || generalHasEnded && !specialHasEnded { return false }
    }
    return true
  }

  @Test func earlyEndsAreToldFromOtherDifferences() {
    func isAlike(_ special: [[String]], _ general: [[String]]) -> Bool {
      Self.isTheSameButForAnEarlyEnd(special, general, ending: "finished")
    }
    #expect(isAlike([["1", "finished"], []], [["1"], ["finished"]]))
    #expect(isAlike([["1", "finished"], []], [["1"], []]))
    #expect(!isAlike([["1"], ["finished"]], [["1", "finished"], []]))
    #expect(!isAlike([["1"], []], [[], ["1"]]))
    #expect(!isAlike([["finished"], ["finished"]], [["finished"], []]))
    #expect(!isAlike([["1"]], [["1", "finished"]]))
  }

  @Test func everySpecialisedOperatorIsInTheTable() throws {
    let tree = try PackageTree(reading: ["Sources/ReactiveCore", "Sources/ReactiveFoundation"])
    let declared = tree.files.values.reduce(into: [String: Int]()) { counts, source in
      for name in source.specialisedOperators { counts[name, default: 0] += 1 }
    }
    let listed = Dictionary(grouping: SpecialisedCase.all, by: \.name)
      .mapValues { Set($0.map(\.overload)).count }
    #expect(declared.values.reduce(0, +) > 130)
    #expect(declared == listed)
  }

  @Test func noCaseStandsTwice() {
    let names = SpecialisedCase.all.map(\.testDescription)
    #expect(names.count == Set(names).count)
  }

  @Test func specialisedOperatorsAreReadWithTheirLabels() {
    let source = """
      extension Just where Output: Equatable {
        @inlinable
        public func twist<T, S: Sequence<T>>(_ one: (Int, [T]) -> Void, by two: S) -> Just<Int> { self }
        public func twist(_ one: Int, by two: Int) -> Just<Int> { self }
        func hidden(_ number: Int) {}
      }

      extension Optional {
        public struct Publisher {
          public func receive<S: Subscriber>(subscriber: S) {}
          public func turn() {}
        }
      }

      public struct Fail<Output>: Publisher {
        public func fall() {}
      }

      extension Publishers {
        public struct Sequence: Publisher {
          public func go(on: Int) {}
        }
        public struct Map: Publisher {
          public func map() {}
        }
      }

      extension Publisher {
        public func general() {}
      }

      """
    #expect(
      source.specialisedOperators.sorted() == [
        "Fail.fall()", "Just.twist(_:by:)", "Just.twist(_:by:)", "Optional.Publisher.turn()",
        "Publishers.Sequence.go(on:)",
      ])
  }
}
