import PortableCombine
import Testing

/// The operators that combine publishers, and those that replace one by another, each overload once.
@Suite struct CombiningSurfaceTests {
  struct Broken: Error, Equatable {}

  typealias A = AnyPublisher<Int, Never>
  typealias B = Publishers.Drop<A>
  typealias C = Publishers.Filter<A>
  typealias D = Publishers.Share<A>
  typealias E = Publishers.RemoveDuplicates<A>
  typealias F = Publishers.First<A>
  typealias G = Publishers.Last<A>
  typealias H = Deferred<A>
  typealias Fallible = AnyPublisher<Int, Broken>

  let a: A = [1, 2, 3].publisher.eraseToAnyPublisher()
  var b: B { a.dropFirst() }
  var c: C { a.filter { $0 > 1 } }
  var d: D { a.share() }
  var e: E { a.removeDuplicates() }
  var f: F { a.first() }
  var g: G { a.last() }
  var h: H { Deferred { a } }
  let fallible: Fallible = Fail(error: Broken()).eraseToAnyPublisher()

  @Test func mergingTwoToEight() {
    expectType(of: a.merge(with: b), is: Publishers.Merge<A, B>.self)
    expectType(of: a.merge(with: b, c), is: Publishers.Merge3<A, B, C>.self)
    expectType(of: a.merge(with: b, c, d), is: Publishers.Merge4<A, B, C, D>.self)
    expectType(of: a.merge(with: b, c, d, e), is: Publishers.Merge5<A, B, C, D, E>.self)
    expectType(of: a.merge(with: b, c, d, e, f), is: Publishers.Merge6<A, B, C, D, E, F>.self)
    expectType(of: a.merge(with: b, c, d, e, f, g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: a.merge(with: b, c, d, e, f, g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    #expect(Publishers.Merge(a, b).a.description == a.description)
    _ = Publishers.Merge3(a, b, c)
    _ = Publishers.Merge4(a, b, c, d)
    _ = Publishers.Merge5(a, b, c, d, e)
    _ = Publishers.Merge6(a, b, c, d, e, f)
    _ = Publishers.Merge7(a, b, c, d, e, f, g)
    _ = Publishers.Merge8(a, b, c, d, e, f, g, h)
  }

  @Test func mergingMany() {
    expectType(of: a.merge(with: a), is: Publishers.MergeMany<A>.self)
    expectType(of: Publishers.MergeMany(a, a, a), is: Publishers.MergeMany<A>.self)
    expectType(of: Publishers.MergeMany([a]), is: Publishers.MergeMany<A>.self)
    expectType(of: Publishers.MergeMany([a]).merge(with: a), is: Publishers.MergeMany<A>.self)
    #expect(Publishers.MergeMany([a, a]).publishers.count == 2)
  }

  @Test func whatIsMergedGrowsByWhatItIsMergedWith() {
    let two = a.merge(with: b)
    expectType(of: two.merge(with: c), is: Publishers.Merge3<A, B, C>.self)
    expectType(of: two.merge(with: c, d), is: Publishers.Merge4<A, B, C, D>.self)
    expectType(of: two.merge(with: c, d, e), is: Publishers.Merge5<A, B, C, D, E>.self)
    expectType(of: two.merge(with: c, d, e, f), is: Publishers.Merge6<A, B, C, D, E, F>.self)
    expectType(of: two.merge(with: c, d, e, f, g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: two.merge(with: c, d, e, f, g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    let three = a.merge(with: b, c)
    expectType(of: three.merge(with: d), is: Publishers.Merge4<A, B, C, D>.self)
    expectType(of: three.merge(with: d, e), is: Publishers.Merge5<A, B, C, D, E>.self)
    expectType(of: three.merge(with: d, e, f), is: Publishers.Merge6<A, B, C, D, E, F>.self)
    expectType(of: three.merge(with: d, e, f, g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: three.merge(with: d, e, f, g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    let four = a.merge(with: b, c, d)
    expectType(of: four.merge(with: e), is: Publishers.Merge5<A, B, C, D, E>.self)
    expectType(of: four.merge(with: e, f), is: Publishers.Merge6<A, B, C, D, E, F>.self)
    expectType(of: four.merge(with: e, f, g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: four.merge(with: e, f, g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    let five = a.merge(with: b, c, d, e)
    expectType(of: five.merge(with: f), is: Publishers.Merge6<A, B, C, D, E, F>.self)
    expectType(of: five.merge(with: f, g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: five.merge(with: f, g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    let six = a.merge(with: b, c, d, e, f)
    expectType(of: six.merge(with: g), is: Publishers.Merge7<A, B, C, D, E, F, G>.self)
    expectType(of: six.merge(with: g, h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
    let seven = a.merge(with: b, c, d, e, f, g)
    expectType(of: seven.merge(with: h), is: Publishers.Merge8<A, B, C, D, E, F, G, H>.self)
  }

  @Test func zipping() {
    expectType(of: a.zip(b), is: Publishers.Zip<A, B>.self)
    expectType(of: a.zip(b, c), is: Publishers.Zip3<A, B, C>.self)
    expectType(of: a.zip(b, c, d), is: Publishers.Zip4<A, B, C, D>.self)
    expectType(of: a.zip(b) { "\($0)\($1)" }, is: Publishers.Map<Publishers.Zip<A, B>, String>.self)
    expectType(
      of: a.zip(b, c) { "\($0)\($1)\($2)" }, is: Publishers.Map<Publishers.Zip3<A, B, C>, String>.self)
    expectType(
      of: a.zip(b, c, d) { "\($0)\($1)\($2)\($3)" },
      is: Publishers.Map<Publishers.Zip4<A, B, C, D>, String>.self)
    expectType(of: Publishers.Zip(a, b), is: Publishers.Zip<A, B>.self)
    expectType(of: Publishers.Zip3(a, b, c), is: Publishers.Zip3<A, B, C>.self)
    expectType(of: Publishers.Zip4(a, b, c, d), is: Publishers.Zip4<A, B, C, D>.self)
    let _: Publishers.Zip4<A, B, C, D>.Output = (1, 2, 3, 4)
    #expect(Publishers.Zip(Just(1), Just(2)) == Just(1).zip(Just(2)))
  }

  @Test func combiningTheLatest() {
    expectType(of: a.combineLatest(b), is: Publishers.CombineLatest<A, B>.self)
    expectType(of: a.combineLatest(b, c), is: Publishers.CombineLatest3<A, B, C>.self)
    expectType(of: a.combineLatest(b, c, d), is: Publishers.CombineLatest4<A, B, C, D>.self)
    expectType(
      of: a.combineLatest(b) { "\($0)\($1)" }, is: Publishers.Map<Publishers.CombineLatest<A, B>, String>.self
    )
    expectType(
      of: a.combineLatest(b, c) { "\($0)\($1)\($2)" },
      is: Publishers.Map<Publishers.CombineLatest3<A, B, C>, String>.self)
    expectType(
      of: a.combineLatest(b, c, d) { "\($0)\($1)\($2)\($3)" },
      is: Publishers.Map<Publishers.CombineLatest4<A, B, C, D>, String>.self)
    expectType(of: Publishers.CombineLatest(a, b), is: Publishers.CombineLatest<A, B>.self)
    expectType(of: Publishers.CombineLatest3(a, b, c), is: Publishers.CombineLatest3<A, B, C>.self)
    expectType(of: Publishers.CombineLatest4(a, b, c, d), is: Publishers.CombineLatest4<A, B, C, D>.self)
    #expect(Publishers.CombineLatest(Just(1), Just(2)) == Just(1).combineLatest(Just(2)))
  }

  @Test func flattening() {
    let a = a
    let fallible = fallible
    expectType(of: a.flatMap { _ in a }, is: Publishers.FlatMap<A, A>.self)
    expectType(of: fallible.flatMap { _ in fallible }, is: Publishers.FlatMap<Fallible, Fallible>.self)
    expectType(
      of: a.flatMap { _ in fallible },
      is: Publishers.FlatMap<Fallible, Publishers.SetFailureType<A, Broken>>.self)
    expectType(
      of: fallible.flatMap { _ in a },
      is: Publishers.FlatMap<Publishers.SetFailureType<A, Broken>, Fallible>.self)
    expectType(
      of: a.flatMap(maxPublishers: .max(1)) { number in Just("\(number)") },
      is: Publishers.FlatMap<Just<String>, A>.self)
    let flat = Publishers.FlatMap(upstream: a, maxPublishers: .max(2)) { _ in a }
    #expect(flat.maxPublishers == .max(2))
  }

  @Test func switching() {
    let a = a
    let fallible = fallible
    typealias OfA = Publishers.Map<A, A>
    typealias OfFallible = Publishers.Map<A, Fallible>
    let ofA: OfA = a.map { _ in a }
    expectType(of: ofA.switchToLatest(), is: Publishers.SwitchToLatest<A, OfA>.self)
    let ofFallible: OfFallible = a.map { _ in fallible }
    expectType(
      of: ofFallible.switchToLatest(),
      is: Publishers.SwitchToLatest<Fallible, Publishers.SetFailureType<OfFallible, Broken>>.self)
    typealias FallibleOfFallible = Publishers.Map<Fallible, Fallible>
    let all: FallibleOfFallible = fallible.map { _ in fallible }
    expectType(of: all.switchToLatest(), is: Publishers.SwitchToLatest<Fallible, FallibleOfFallible>.self)
    typealias FallibleOfA = Publishers.Map<Fallible, A>
    let outer: FallibleOfA = fallible.map { _ in a }
    typealias Safe = Publishers.SetFailureType<A, Broken>
    expectType(
      of: outer.switchToLatest(),
      is: Publishers.SwitchToLatest<Safe, Publishers.Map<FallibleOfA, Safe>>.self)
    _ = Publishers.SwitchToLatest(upstream: ofA)
  }

  @Test func appendingAndPrepending() {
    typealias Some = Publishers.Sequence<[Int], Never>
    expectType(of: a.append(4, 5), is: Publishers.Concatenate<A, Some>.self)
    expectType(of: a.append([4, 5]), is: Publishers.Concatenate<A, Some>.self)
    expectType(
      of: a.append(4...5), is: Publishers.Concatenate<A, Publishers.Sequence<ClosedRange<Int>, Never>>.self)
    expectType(of: a.append(b), is: Publishers.Concatenate<A, B>.self)
    expectType(of: a.prepend(4, 5), is: Publishers.Concatenate<Some, A>.self)
    expectType(of: a.prepend([4, 5]), is: Publishers.Concatenate<Some, A>.self)
    expectType(
      of: a.prepend(Set([4])), is: Publishers.Concatenate<Publishers.Sequence<Set<Int>, Never>, A>.self)
    expectType(of: a.prepend(b), is: Publishers.Concatenate<B, A>.self)
    expectType(of: Publishers.Concatenate(prefix: a, suffix: b), is: Publishers.Concatenate<A, B>.self)
    var values: [Int] = []
    _ = a.append(4, 5).prepend(0).sink { values.append($0) }
    #expect(values == [0, 1, 2, 3, 4, 5])
  }

  @Test func untilAnother() {
    expectType(of: a.drop(untilOutputFrom: b), is: Publishers.DropUntilOutput<A, B>.self)
    expectType(of: a.prefix(untilOutputFrom: fallible), is: Publishers.PrefixUntilOutput<A, Fallible>.self)
    _ = Publishers.DropUntilOutput(upstream: a, other: b)
    _ = Publishers.PrefixUntilOutput(upstream: a, other: fallible)
  }

  @Test func replacing() {
    func check(_ a: A) throws -> A { a }
    let a = a
    let fallible = fallible
    expectType(of: fallible.catch { _ in a }, is: Publishers.Catch<Fallible, A>.self)
    expectType(of: fallible.catch { _ in fallible }, is: Publishers.Catch<Fallible, Fallible>.self)
    expectType(of: fallible.tryCatch { _ in try check(a) }, is: Publishers.TryCatch<Fallible, A>.self)
    let _: any Publisher<Int, Never> = fallible.catch { _ in a }
    let _: any Publisher<Int, any Error> = fallible.tryCatch { _ in a }
    expectType(of: fallible.retry(2), is: Publishers.Retry<Fallible>.self)
    #expect(Publishers.Retry(upstream: fallible, retries: nil).retries == nil)
    expectType(of: fallible.replaceError(with: 1), is: Publishers.ReplaceError<Fallible>.self)
    expectType(of: fallible.replaceEmpty(with: 1), is: Publishers.ReplaceEmpty<Fallible>.self)
    expectType(of: fallible.assertNoFailure(), is: Publishers.AssertNoFailure<Fallible>.self)
    expectType(
      of: fallible.assertNoFailure("here", file: #file, line: #line),
      is: Publishers.AssertNoFailure<Fallible>.self)
    let optionals: AnyPublisher<Int?, Never> = [1, nil].publisher.eraseToAnyPublisher()
    expectType(of: optionals.replaceNil(with: 0), is: Publishers.Map<AnyPublisher<Int?, Never>, Int>.self)
  }
}
