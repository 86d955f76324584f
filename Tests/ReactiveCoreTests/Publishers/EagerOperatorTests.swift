import ReactiveCore
import ReactiveTestSupport
import Testing

/// What a publisher delivers to someone who asks for everything.
private func events<P: Publisher>(_ publisher: P) -> [Happening] where P.Output: Hashable {
  let subscriber = TrackingSubscriber<P.Output, P.Failure>(.unlimited)
  publisher.subscribe(subscriber)
  return Array(subscriber.history.events.dropFirst())
}

/// Checks that an operator done at once delivers what the same operator on the stream does.
private func expectAlike<Eager: Publisher, Lazy: Publisher>(
  _ eager: Eager, _ lazy: Lazy, sourceLocation: SourceLocation = #_sourceLocation
) where Eager.Output: Hashable, Lazy.Output == Eager.Output {
  #expect(events(eager) == events(lazy), sourceLocation: sourceLocation)
  // Erasure hides the operators that are done at once, so the second is none of them.
  #expect(Eager.self != Lazy.self, sourceLocation: sourceLocation)
}

private func anyOops<E: Error>(_ error: E) -> Oops { Oops() }
private func failing(_ value: Int) throws -> Bool { throw Oops(number: value) }
private func failing(_ left: Int, _ right: Int) throws -> Bool { throw Oops(number: left + right) }

@Suite struct EagerJustTests {
  let just = Just(5)
  let lazy = Just(5).eraseToAnyPublisher()

  @Test func transforms() {
    expectAlike(just.map { $0 + 1 }, lazy.map { $0 + 1 })
    expectAlike(just.tryMap { $0 + 1 }, lazy.tryMap { $0 + 1 })
    expectAlike(just.tryMap(failing), lazy.tryMap(failing))
    expectAlike(just.compactMap { _ in Int?.none }, lazy.compactMap { _ in Int?.none })
    expectAlike(just.reduce(1, +), lazy.reduce(1, +))
    expectAlike(just.tryReduce(1) { $0 + $1 }, lazy.tryReduce(1) { $0 + $1 })
    expectAlike(just.scan(1, +), lazy.scan(1, +))
    expectAlike(just.tryScan(1) { $0 + $1 }, lazy.tryScan(1) { $0 + $1 })
    expectAlike(just.collect(), lazy.collect())
    expectAlike(just.count(), lazy.count())
    expectAlike(just.ignoreOutput(), lazy.filter { _ in false })
  }

  @Test func answers() {
    for limit in [4, 6] {
      expectAlike(just.allSatisfy { $0 < limit }, lazy.allSatisfy { $0 < limit })
      expectAlike(just.contains { $0 < limit }, lazy.contains { $0 < limit })
      expectAlike(just.contains(limit - 1), lazy.contains(limit - 1))
      expectAlike(just.tryAllSatisfy { $0 < limit }, lazy.tryAllSatisfy { $0 < limit })
      expectAlike(just.tryContains { $0 < limit }, lazy.tryContains { $0 < limit })
    }
    expectAlike(just.tryAllSatisfy(failing), lazy.tryAllSatisfy(failing))
    #expect(just.min() == just && just.max() == just && just.removeDuplicates() == just)
    #expect(just.min(by: >) == just && just.max(by: >) == just && just.removeDuplicates(by: ==) == just)
    expectAlike(just.tryRemoveDuplicates(by: ==), lazy.tryRemoveDuplicates(by: ==))
    #expect(events(just.tryRemoveDuplicates(by: failing)) == [.failed(Oops(number: 10))])
  }

  @Test func picks() {
    #expect(just.first() == just && just.last() == just)
    for limit in [4, 6] {
      expectAlike(just.filter { $0 < limit }, lazy.filter { $0 < limit })
      expectAlike(just.first { $0 < limit }, lazy.first { $0 < limit })
      expectAlike(just.last { $0 < limit }, lazy.last { $0 < limit })
      expectAlike(just.drop { $0 < limit }, lazy.drop { $0 < limit })
      expectAlike(just.prefix { $0 < limit }, lazy.prefix { $0 < limit })
    }
    for count in 0...2 {
      expectAlike(just.dropFirst(count), lazy.dropFirst(count))
      expectAlike(just.prefix(count), lazy.prefix(count))
      expectAlike(just.output(at: count), lazy.output(at: count))
      expectAlike(just.output(in: count..<3), lazy.output(in: count..<3))
    }
  }

  @Test func cannotFail() {
    #expect(just.replaceError(with: 1) == just && just.replaceEmpty(with: 1) == just && just.retry(3) == just)
    #expect(just.setFailureType(to: Oops.self) == Result.success(5).publisher)
    #expect(just.mapError(anyOops) == Result.success(5).publisher)
  }

  @Test func hasNeighbours() {
    #expect(just.prepend(1, 2).sequence == [1, 2, 5])
    #expect(just.prepend(1...2).sequence == [1, 2, 5])
    #expect(just.append(6, 7).sequence == [5, 6, 7])
    #expect(just.append([6]).sequence == [5, 6])
  }
}

@Suite struct EagerOptionalTests {
  let some = Optional(5).publisher
  let none = Int?.none.publisher
  let lazy = Optional(5).publisher.eraseToAnyPublisher()

  @Test func transforms() {
    expectAlike(some.map { $0 + 1 }, lazy.map { $0 + 1 })
    expectAlike(some.compactMap { _ in Int?.none }, lazy.compactMap { _ in Int?.none })
    expectAlike(some.reduce(1, +), lazy.reduce(1, +))
    expectAlike(some.scan(1, +), lazy.scan(1, +))
    expectAlike(some.collect(), lazy.collect())
    expectAlike(some.count(), lazy.count())
    expectAlike(some.ignoreOutput(), lazy.filter { _ in false })
  }

  @Test func withoutAValueThereIsNoResult() {
    #expect(events(none.map { $0 + 1 }) == [.finished])
    #expect(events(none.reduce(1, +)) == [.finished])
    #expect(events(none.collect()) == [.value([Int]()), .finished])
    #expect(events(none.count()) == [.finished])
    #expect(events(none.allSatisfy { $0 > 0 }) == [.finished])
    #expect(events(none.contains(1)) == [.finished])
    #expect(none.replaceEmpty(with: 7) == Just(7))
  }

  @Test func answers() {
    for limit in [4, 6] {
      expectAlike(some.allSatisfy { $0 < limit }, lazy.allSatisfy { $0 < limit })
      expectAlike(some.contains { $0 < limit }, lazy.contains { $0 < limit })
      expectAlike(some.contains(limit - 1), lazy.contains(limit - 1))
    }
    #expect(some.min() == some && some.max() == some && some.removeDuplicates() == some)
    #expect(some.min(by: >) == some && some.max(by: >) == some && some.removeDuplicates(by: ==) == some)
  }

  @Test func picks() {
    #expect(some.first() == some && some.last() == some)
    for limit in [4, 6] {
      expectAlike(some.filter { $0 < limit }, lazy.filter { $0 < limit })
      expectAlike(some.first { $0 < limit }, lazy.first { $0 < limit })
      expectAlike(some.last { $0 < limit }, lazy.last { $0 < limit })
      expectAlike(some.drop { $0 < limit }, lazy.drop { $0 < limit })
      expectAlike(some.prefix { $0 < limit }, lazy.prefix { $0 < limit })
    }
    for count in 0...2 {
      expectAlike(some.dropFirst(count), lazy.dropFirst(count))
      expectAlike(some.prefix(count), lazy.prefix(count))
      expectAlike(some.output(at: count), lazy.output(at: count))
      expectAlike(some.output(in: count..<3), lazy.output(in: count..<3))
    }
  }

  @Test func cannotFail() {
    #expect(some.replaceError(with: 1) == some && some.retry(3) == some)
    #expect(some.replaceEmpty(with: 1) == Just(5))
  }
}

@Suite struct EagerResultTests {
  let success = Result<Int, Oops>.success(5).publisher
  let failure = Result<Int, Oops>.failure(Oops(number: 1)).publisher

  @Test func doesWhatTheOperatorsOnTheStreamDo() {
    for eager in [success, failure] {
      let lazy = eager.eraseToAnyPublisher()
      expectAlike(eager.map { $0 + 1 }, lazy.map { $0 + 1 })
      expectAlike(eager.tryMap { $0 + 1 }, lazy.tryMap { $0 + 1 })
      expectAlike(eager.tryMap(failing), lazy.tryMap(failing))
      expectAlike(eager.reduce(1, +), lazy.reduce(1, +))
      expectAlike(eager.tryReduce(1) { $0 + $1 }, lazy.tryReduce(1) { $0 + $1 })
      expectAlike(eager.scan(1, +), lazy.scan(1, +))
      expectAlike(eager.tryScan(1) { $0 + $1 }, lazy.tryScan(1) { $0 + $1 })
      expectAlike(eager.collect(), lazy.collect())
      expectAlike(eager.count(), lazy.count())
      expectAlike(eager.allSatisfy { $0 > 1 }, lazy.allSatisfy { $0 > 1 })
      expectAlike(eager.contains { $0 > 9 }, lazy.contains { $0 > 9 })
      expectAlike(eager.contains(5), lazy.contains(5))
      expectAlike(eager.tryAllSatisfy(failing), lazy.tryAllSatisfy(failing))
      expectAlike(eager.tryContains { $0 > 1 }, lazy.tryContains { $0 > 1 })
      expectAlike(eager.tryMin(by: <), lazy.tryMin(by: <))
      expectAlike(eager.tryMax(by: <), lazy.tryMax(by: <))
      expectAlike(eager.tryRemoveDuplicates(by: ==), lazy.tryRemoveDuplicates(by: ==))
      expectAlike(
        eager.mapError { Oops(number: $0.number + 1) }, lazy.mapError { Oops(number: $0.number + 1) })
      expectAlike(eager.replaceError(with: 9), lazy.replaceError(with: 9))
      #expect(eager.min() == eager && eager.max() == eager && eager.removeDuplicates() == eager)
      #expect(eager.min(by: >) == eager && eager.max(by: >) == eager)
      #expect(eager.removeDuplicates(by: ==) == eager && eager.replaceEmpty(with: 1) == eager)
      #expect(eager.first() == eager && eager.last() == eager && eager.retry(1) == eager)
    }
  }

  @Test func comparisonsThatThrowFail() {
    #expect(events(success.tryMin(by: failing)) == [.failed(Oops(number: 10))])
    #expect(events(success.tryRemoveDuplicates(by: failing)) == [.failed(Oops(number: 10))])
  }

  @Test func aNilIsAValueWhereErrorsAreReplaced() {
    #expect(
      events(Result<Int?, Oops>.success(nil).publisher.replaceError(with: 1)) == [
        .value(Int?.none), .finished,
      ])
  }

  @Test func finishesInPlaceOfAnythingIgnored() {
    #expect(events(failure.ignoreOutput()) == [.finished])
  }

  @Test func mayGetATypeOfFailure() {
    #expect(Result<Int, Never>.success(5).publisher.setFailureType(to: Oops.self) == success)
  }
}

@Suite struct EagerSequenceTests {
  let eager = [3, 1, 1, 4, 1, 5].publisher
  let lazy = [3, 1, 1, 4, 1, 5].publisher.eraseToAnyPublisher()

  @Test func transforms() {
    expectAlike(eager.map { $0 * 2 }, lazy.map { $0 * 2 })
    expectAlike(eager.compactMap { $0 > 1 ? $0 : nil }, lazy.compactMap { $0 > 1 ? $0 : nil })
    expectAlike(eager.filter { $0 > 1 }, lazy.filter { $0 > 1 })
    expectAlike(eager.scan(0, +), lazy.scan(0, +))
    expectAlike(eager.removeDuplicates(), lazy.removeDuplicates())
    expectAlike(eager.ignoreOutput(), lazy.filter { _ in false })
    #expect(eager.setFailureType(to: Oops.self).sequence == eager.sequence)
    let optionals: Publishers.Sequence<[Int?], Never> = [1, nil].publisher.replaceNil(with: 7)
    #expect(optionals.sequence == [1, 7])
  }

  @Test func answers() {
    expectAlike(eager.collect(), lazy.collect())
    expectAlike(eager.count(), lazy.count())
    expectAlike(eager.reduce(0, +), lazy.reduce(0, +))
    expectAlike(eager.tryReduce(0) { $0 + $1 }, lazy.tryReduce(0) { $0 + $1 })
    expectAlike(eager.allSatisfy { $0 > 1 }, lazy.allSatisfy { $0 > 1 })
    expectAlike(eager.tryAllSatisfy(failing), lazy.tryAllSatisfy(failing))
    expectAlike(eager.contains { $0 > 4 }, lazy.contains { $0 > 4 })
    expectAlike(eager.contains(9), lazy.contains(9))
    expectAlike(eager.tryContains(where: failing), lazy.tryContains(where: failing))
    expectAlike(eager.min(), lazy.min())
    expectAlike(eager.max(), lazy.max())
    expectAlike(eager.min(by: >), lazy.min(by: >))
    expectAlike(eager.max(by: >), lazy.max(by: >))
  }

  @Test func picks() {
    expectAlike(eager.first(), lazy.first())
    expectAlike(eager.last(), lazy.last())
    expectAlike(eager.first { $0 > 3 }, lazy.first { $0 > 3 })
    expectAlike(eager.last { $0 > 3 }, lazy.last { $0 > 3 })
    expectAlike(eager.drop { $0 > 1 }, lazy.drop { $0 > 1 })
    expectAlike(eager.prefix { $0 > 1 }, lazy.prefix { $0 > 1 })
    for count in [0, 2, 6, 9] {
      expectAlike(eager.dropFirst(count), lazy.dropFirst(count))
      expectAlike(eager.prefix(count), lazy.prefix(count))
      expectAlike(eager.output(at: count), lazy.output(at: count))
    }
    expectAlike(eager.output(in: 1..<3), lazy.output(in: 1..<3))
  }

  @Test func whatHasNoElementsHasNoFirst() {
    let empty = [Int]().publisher
    #expect(events(empty.first()) == [.finished])
    #expect(events(empty.last()) == [.finished])
    #expect(events(empty.min()) == [.finished])
    #expect(events(empty.count()) == [.value(0), .finished])
  }

  @Test func returnsThePublishersThatCombineReturns() {
    #expect(type(of: eager.count()) == Just<Int>.self)
    #expect(type(of: eager.setFailureType(to: Oops.self).count()) == Result<Int, Oops>.Publisher.self)
    #expect(type(of: "text".publisher.count()) == Just<Int>.self)
    #expect(type(of: eager.map { $0 }) == Publishers.Sequence<[Int], Never>.self)
    #expect(type(of: "text".publisher.last()) == Optional<Character>.Publisher.self)
    #expect(type(of: eager.collect()) == Result<[Int], Never>.Publisher.self)
  }
}
