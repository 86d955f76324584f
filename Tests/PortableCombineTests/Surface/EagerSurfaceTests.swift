import PortableCombine
import Testing

/// Operators that compute their result at once on existing values, each overload once, with the same type as in Combine.
@Suite struct EagerSurfaceTests {
  struct Broken: Error, Equatable {}

  typealias Maybe<T> = Optional<T>.Publisher
  typealias Outcome<T> = Result<T, Broken>.Publisher
  typealias Safe<T> = Result<T, Never>.Publisher
  typealias Risky<T> = Result<T, any Error>.Publisher
  typealias List<T> = Publishers.Sequence<[T], Never>

  @Test func just() {
    let just = Just(1)
    expectType(of: just.map { "\($0)" }, is: Just<String>.self)
    expectType(of: just.tryMap { "\($0)" }, is: Risky<String>.self)
    expectType(of: just.compactMap { Optional("\($0)") }, is: Maybe<String>.self)
    expectType(of: just.filter { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: just.reduce("") { $0 + "\($1)" }, is: Safe<String>.self)
    expectType(of: just.tryReduce("") { $0 + "\($1)" }, is: Risky<String>.self)
    expectType(of: just.scan("") { $0 + "\($1)" }, is: Safe<String>.self)
    expectType(of: just.tryScan("") { $0 + "\($1)" }, is: Risky<String>.self)
    expectType(of: just.collect(), is: Just<[Int]>.self)
    expectType(of: just.count(), is: Just<Int>.self)
    expectType(of: just.ignoreOutput(), is: Empty<Int, Never>.self)
    expectType(of: just.allSatisfy { $0 > 1 }, is: Just<Bool>.self)
    expectType(of: just.tryAllSatisfy { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: just.contains(1), is: Just<Bool>.self)
    expectType(of: just.contains { $0 > 1 }, is: Just<Bool>.self)
    expectType(of: just.tryContains { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: just.min(), is: Just<Int>.self)
    expectType(of: just.max(), is: Just<Int>.self)
    expectType(of: just.min { $0 < $1 }, is: Just<Int>.self)
    expectType(of: just.max { $0 < $1 }, is: Just<Int>.self)
    expectType(of: just.removeDuplicates(), is: Just<Int>.self)
    expectType(of: just.removeDuplicates { $0 == $1 }, is: Just<Int>.self)
    expectType(of: just.tryRemoveDuplicates { $0 == $1 }, is: Risky<Int>.self)
    expectType(of: just.replaceError(with: 2), is: Just<Int>.self)
    expectType(of: just.replaceEmpty(with: 2), is: Just<Int>.self)
    expectType(of: just.retry(2), is: Just<Int>.self)
    expectType(of: just.setFailureType(to: Broken.self), is: Outcome<Int>.self)
    func broken(_ never: Never) -> Broken {}
    expectType(of: just.mapError(broken), is: Outcome<Int>.self)
  }

  @Test func partsOfJust() {
    let just = Just(1)
    expectType(of: just.first(), is: Just<Int>.self)
    expectType(of: just.first { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: just.last(), is: Just<Int>.self)
    expectType(of: just.last { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: just.dropFirst(), is: Maybe<Int>.self)
    expectType(of: just.dropFirst(2), is: Maybe<Int>.self)
    expectType(of: just.drop { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: just.prefix(2), is: Maybe<Int>.self)
    expectType(of: just.prefix { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: just.output(at: 0), is: Maybe<Int>.self)
    expectType(of: just.output(in: 0...), is: Maybe<Int>.self)
    expectType(of: just.append(2, 3), is: List<Int>.self)
    expectType(of: just.append(2...3), is: List<Int>.self)
    expectType(of: just.prepend(2, 3), is: List<Int>.self)
    expectType(of: just.prepend(Set([2])), is: List<Int>.self)
    expectType(of: just.append(just), is: Publishers.Concatenate<Just<Int>, Just<Int>>.self)
    #expect(Just(1) == Just(1) && just.output == 1)
  }

  @Test func optional() {
    let one = Optional(1).publisher
    expectType(of: one, is: Maybe<Int>.self)
    expectType(of: one.map { "\($0)" }, is: Maybe<String>.self)
    expectType(of: one.compactMap { Optional("\($0)") }, is: Maybe<String>.self)
    expectType(of: one.filter { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: one.reduce("") { $0 + "\($1)" }, is: Maybe<String>.self)
    expectType(of: one.scan("") { $0 + "\($1)" }, is: Maybe<String>.self)
    expectType(of: one.collect(), is: Maybe<[Int]>.self)
    expectType(of: one.count(), is: Maybe<Int>.self)
    expectType(of: one.ignoreOutput(), is: Empty<Int, Never>.self)
    expectType(of: one.allSatisfy { $0 > 1 }, is: Maybe<Bool>.self)
    expectType(of: one.contains(1), is: Maybe<Bool>.self)
    expectType(of: one.contains { $0 > 1 }, is: Maybe<Bool>.self)
    expectType(of: one.min(), is: Maybe<Int>.self)
    expectType(of: one.max(), is: Maybe<Int>.self)
    expectType(of: one.min { $0 < $1 }, is: Maybe<Int>.self)
    expectType(of: one.max { $0 < $1 }, is: Maybe<Int>.self)
    expectType(of: one.removeDuplicates(), is: Maybe<Int>.self)
    expectType(of: one.removeDuplicates { $0 == $1 }, is: Maybe<Int>.self)
    expectType(of: one.first(), is: Maybe<Int>.self)
    expectType(of: one.first { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: one.last(), is: Maybe<Int>.self)
    expectType(of: one.last { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: one.dropFirst(), is: Maybe<Int>.self)
    expectType(of: one.drop { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: one.prefix(1), is: Maybe<Int>.self)
    expectType(of: one.prefix { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: one.output(at: 0), is: Maybe<Int>.self)
    expectType(of: one.output(in: ..<1), is: Maybe<Int>.self)
    expectType(of: one.replaceError(with: 2), is: Maybe<Int>.self)
    expectType(of: one.replaceEmpty(with: 2), is: Just<Int>.self)
    expectType(of: one.retry(2), is: Maybe<Int>.self)
    #expect(one == Optional.Publisher(1) && one.output == 1)
  }

  @Test func result() {
    let one = Result<Int, Broken>.success(1).publisher
    expectType(of: one, is: Outcome<Int>.self)
    expectType(of: one.map { "\($0)" }, is: Outcome<String>.self)
    expectType(of: one.tryMap { "\($0)" }, is: Risky<String>.self)
    expectType(
      of: one.mapError { _ in CancellationError() }, is: Result<Int, CancellationError>.Publisher.self)
    expectType(of: one.reduce("") { $0 + "\($1)" }, is: Outcome<String>.self)
    expectType(of: one.tryReduce("") { $0 + "\($1)" }, is: Risky<String>.self)
    expectType(of: one.scan("") { $0 + "\($1)" }, is: Outcome<String>.self)
    expectType(of: one.tryScan("") { $0 + "\($1)" }, is: Risky<String>.self)
    expectType(of: one.collect(), is: Outcome<[Int]>.self)
    expectType(of: one.count(), is: Outcome<Int>.self)
    expectType(of: one.ignoreOutput(), is: Empty<Int, Broken>.self)
    expectType(of: one.allSatisfy { $0 > 1 }, is: Outcome<Bool>.self)
    expectType(of: one.tryAllSatisfy { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: one.contains(1), is: Outcome<Bool>.self)
    expectType(of: one.contains { $0 > 1 }, is: Outcome<Bool>.self)
    expectType(of: one.tryContains { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: one.min(), is: Outcome<Int>.self)
    expectType(of: one.max(), is: Outcome<Int>.self)
    expectType(of: one.min { $0 < $1 }, is: Outcome<Int>.self)
    expectType(of: one.max { $0 < $1 }, is: Outcome<Int>.self)
    expectType(of: one.tryMin { $0 < $1 }, is: Risky<Int>.self)
    expectType(of: one.tryMax { $0 < $1 }, is: Risky<Int>.self)
    expectType(of: one.removeDuplicates(), is: Outcome<Int>.self)
    expectType(of: one.removeDuplicates { $0 == $1 }, is: Outcome<Int>.self)
    expectType(of: one.tryRemoveDuplicates { $0 == $1 }, is: Risky<Int>.self)
    expectType(of: one.first(), is: Outcome<Int>.self)
    expectType(of: one.last(), is: Outcome<Int>.self)
    expectType(of: one.replaceError(with: 2), is: Safe<Int>.self)
    expectType(of: one.replaceEmpty(with: 2), is: Outcome<Int>.self)
    expectType(of: one.retry(2), is: Outcome<Int>.self)
    expectType(of: Safe(1).setFailureType(to: Broken.self), is: Outcome<Int>.self)
    #expect(one == Result.Publisher(1) && one.result == .success(1))
  }

  @Test func sequence() {
    let some = Set([1, 2]).publisher
    typealias Some = Set<Int>
    expectType(of: some, is: Publishers.Sequence<Some, Never>.self)
    expectType(of: some.map { "\($0)" }, is: List<String>.self)
    expectType(of: some.compactMap { Optional("\($0)") }, is: List<String>.self)
    expectType(of: some.filter { $0 > 1 }, is: List<Int>.self)
    expectType(of: some.scan("") { $0 + "\($1)" }, is: List<String>.self)
    expectType(of: [1, nil].publisher.replaceNil(with: 2), is: List<Int?>.self)
    expectType(of: some.ignoreOutput(), is: Empty<Int, Never>.self)
    expectType(of: some.setFailureType(to: Broken.self), is: Publishers.Sequence<Some, Broken>.self)
    expectType(of: some.collect(), is: Safe<[Int]>.self)
    expectType(of: some.reduce("") { $0 + "\($1)" }, is: Safe<String>.self)
    expectType(of: some.tryReduce("") { $0 + "\($1)" }, is: Risky<String>.self)
    expectType(of: some.allSatisfy { $0 > 1 }, is: Safe<Bool>.self)
    expectType(of: some.tryAllSatisfy { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: some.contains { $0 > 1 }, is: Safe<Bool>.self)
    expectType(of: some.tryContains { $0 > 1 }, is: Risky<Bool>.self)
    expectType(of: some.contains(1), is: Safe<Bool>.self)
    expectType(of: some.removeDuplicates(), is: List<Int>.self)
    expectType(of: some.min(), is: Maybe<Int>.self)
    expectType(of: some.max(), is: Maybe<Int>.self)
    expectType(of: some.min { $0 < $1 }, is: Maybe<Int>.self)
    expectType(of: some.max { $0 < $1 }, is: Maybe<Int>.self)
    expectType(of: some.first { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: some.dropFirst(), is: Publishers.Sequence<DropFirstSequence<Some>, Never>.self)
    expectType(of: some.drop { $0 > 1 }, is: Publishers.Sequence<DropWhileSequence<Some>, Never>.self)
    expectType(of: some.prefix(2), is: Publishers.Sequence<PrefixSequence<Some>, Never>.self)
    expectType(of: some.prefix { $0 > 1 }, is: List<Int>.self)
  }

  @Test func collection() {
    let list = [1, 2].publisher
    typealias Fallible = Publishers.Sequence<[Int], Broken>
    let fallible = Fallible(sequence: [1, 2])
    expectType(of: list, is: List<Int>.self)
    expectType(of: list.first(), is: Maybe<Int>.self)
    expectType(of: list.last(), is: Maybe<Int>.self)
    expectType(of: list.last { $0 > 1 }, is: Maybe<Int>.self)
    expectType(of: Set([1]).publisher.first(), is: Maybe<Int>.self)
    expectType(of: Set([1]).publisher.count(), is: Just<Int>.self)
    expectType(of: list.count(), is: Just<Int>.self)
    expectType(of: fallible.count(), is: Outcome<Int>.self)
    expectType(of: list.output(at: 0), is: Maybe<Int>.self)
    expectType(of: list.output(in: 0..<1), is: List<Int>.self)
    expectType(of: fallible.output(in: 0..<1), is: Fallible.self)
    expectType(of: list.append(3, 4), is: List<Int>.self)
    expectType(of: list.append(Set([3])), is: List<Int>.self)
    expectType(of: list.append(list), is: List<Int>.self)
    expectType(of: list.prepend(3, 4), is: List<Int>.self)
    expectType(of: list.prepend(3...4), is: List<Int>.self)
    expectType(of: list.prepend(list), is: List<Int>.self)
    expectType(of: fallible.map { "\($0)" }, is: Publishers.Sequence<[String], Broken>.self)
    expectType(of: fallible.collect(), is: Outcome<[Int]>.self)
    #expect(list == [1, 2].publisher && list.sequence == [1, 2])
  }
}
