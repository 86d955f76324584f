import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CountTests {
  @Test func countsToTheEnd() {
    expectReduction(named: "Count", of: [5, 6, 7], delivers: 3) { $0.count() }
    expectReduction(named: "Count", of: [], delivers: 0) { $0.count() }
  }
}

@Suite struct ReduceTests {
  @Test func combinesAllValues() {
    expectReduction(named: "Reduce", of: [1, 2, 3], delivers: "0123") { $0.reduce("0") { "\($0)\($1)" } }
    expectReduction(named: "TryReduce", of: [1, 2, 3], delivers: 6) { $0.tryReduce(0) { $0 + $1 } }
    expectReduction(named: "Reduce", of: [], delivers: 9) { $0.reduce(9, +) }
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig(demand: nil) { $0.tryReduce(0) { if $1 > 1 { throw Oops(number: $1) } else { return $0 } } }
    rig.source.send(1)
    rig.source.send(2)
    rig.source.send(3)
    #expect(
      rig.take() == [
        .subscription("TryReduce"), .requested(.unlimited), .cancelled, .failed(Oops(number: 2)),
      ])
  }
}

@Suite struct ComparisonTests {
  @Test func findsTheExtremes() {
    expectReduction(named: "Comparison", of: [2, 3, 1], delivers: 3) { $0.max() }
    expectReduction(named: "Comparison", of: [2, 3, 1], delivers: 1) { $0.min() }
    expectReduction(named: "TryComparison", of: [2, 3, 1], delivers: 3) { $0.tryMax { $0 < $1 } }
    expectReduction(named: "TryComparison", of: [2, 3, 1], delivers: 1) { $0.tryMin { $0 < $1 } }
    expectReduction(named: "Comparison", of: [], delivers: nil) { $0.max() }
  }

  @Test func keepsTheFirstOfThoseThatAreEqual() {
    expectReduction(named: "Comparison", of: [11, 21, 12, 22], delivers: 21) { $0.max { $0 / 10 < $1 / 10 } }
    expectReduction(named: "Comparison", of: [21, 11, 22, 12], delivers: 11) { $0.min { $0 / 10 < $1 / 10 } }
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig(demand: nil) { $0.tryMax { _, new in throw Oops(number: new) } }
    rig.source.send(1)
    rig.source.send(2)
    #expect(
      rig.take() == [
        .subscription("TryComparison"), .requested(.unlimited), .cancelled, .failed(Oops(number: 2)),
      ])
  }
}

@Suite struct ContainsTests {
  @Test func deliversFalseAtTheEnd() {
    expectReduction(named: "Contains", of: [1, 2], delivers: false) { $0.contains(3) }
    expectReduction(named: "ContainsWhere", of: [1, 2], delivers: false) { $0.contains { $0 > 2 } }
    expectReduction(named: "TryContainsWhere", of: [1, 2], delivers: false) { $0.tryContains { $0 > 2 } }
  }

  @Test func deliversTrueAsSoonAsItKnows() {
    let rig = Rig { $0.contains(2) }
    for value in 1...3 { rig.source.send(value) }
    #expect(
      rig.take() == [.subscription("Contains"), .requested(.unlimited), .cancelled, .value(true), .finished])
    let other = Rig { $0.contains { $0 == 2 } }
    for value in 1...3 { other.source.send(value) }
    #expect(
      other.take() == [
        .subscription("ContainsWhere"), .requested(.unlimited), .cancelled, .value(true), .finished,
      ])
  }

  @Test func anEarlyResultWaitsForDemandToo() {
    let rig = Rig(demand: nil) { $0.contains(1) }
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("Contains"), .requested(.unlimited), .cancelled])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(true), .finished])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryContains { throw Oops(number: $0) } }
    rig.source.send(1)
    #expect(
      rig.take() == [
        .subscription("TryContainsWhere"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }
}

@Suite struct AllSatisfyTests {
  @Test func deliversTrueAtTheEnd() {
    expectReduction(named: "AllSatisfy", of: [1, 2], delivers: true) { $0.allSatisfy { $0 > 0 } }
    expectReduction(named: "TryAllSatisfy", of: [1, 2], delivers: true) { $0.tryAllSatisfy { $0 > 0 } }
  }

  @Test func deliversFalseAsSoonAsItKnows() {
    let rig = Rig { $0.allSatisfy { $0 < 2 } }
    for value in 1...3 { rig.source.send(value) }
    #expect(
      rig.take() == [
        .subscription("AllSatisfy"), .requested(.unlimited), .cancelled, .value(false), .finished,
      ])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryAllSatisfy { throw Oops(number: $0) } }
    rig.source.send(1)
    #expect(
      rig.take() == [
        .subscription("TryAllSatisfy"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }
}

@Suite struct FirstTests {
  @Test func withoutAMatchItOnlyFinishes() {
    expectReduction(named: "First", of: [], delivers: nil) { $0.first() }
    expectReduction(named: "TryFirst", of: [1], delivers: nil) { $0.first { $0 > 1 } }
    expectReduction(named: "TryFirstWhere", of: [1], delivers: nil) { $0.tryFirst { $0 > 1 } }
  }

  @Test func deliversTheFirstAndCancels() {
    let rig = Rig { $0.first() }
    rig.source.send(1)
    rig.source.send(2)
    #expect(rig.take() == [.subscription("First"), .requested(.unlimited), .cancelled, .value(1), .finished])
    let other = Rig { $0.first { $0 > 1 } }
    for value in 1...3 { other.source.send(value) }
    #expect(
      other.take() == [.subscription("TryFirst"), .requested(.unlimited), .cancelled, .value(2), .finished])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryFirst { throw Oops(number: $0) } }
    rig.source.send(1)
    #expect(
      rig.take() == [
        .subscription("TryFirstWhere"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }
}

@Suite struct LastTests {
  @Test func deliversTheLast() {
    expectReduction(named: "Last", of: [1, 2, 3], delivers: 3) { $0.last() }
    expectReduction(named: "Last", of: [], delivers: nil) { $0.last() }
    expectReduction(named: "LastWhere", of: [1, 2, 3], delivers: 2) { $0.last { $0 < 3 } }
    expectReduction(named: "TryLastWhere", of: [1, 2, 3], delivers: 2) { $0.tryLast { $0 < 3 } }
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryLast { throw Oops(number: $0) } }
    rig.source.send(1)
    #expect(
      rig.take() == [
        .subscription("TryLastWhere"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }
}

@Suite struct IgnoreOutputTests {
  @Test func passesOnlyTheCompletion() {
    expectReduction(named: "IgnoreOutput", of: [1, 2], delivers: nil) { $0.ignoreOutput() }
  }
}

@Suite struct ReplaceNilTests {
  @Test func replacesNil() {
    var values: [Int] = []
    _ = [1, nil, 3].publisher.eraseToAnyPublisher().replaceNil(with: 0).sink { values.append($0) }
    #expect(values == [1, 0, 3])
  }
}
