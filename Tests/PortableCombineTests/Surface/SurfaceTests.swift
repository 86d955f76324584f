import PortableCombine
import Testing

/// The expressions of a program that imports only this module: each overload once, with the same type as in Combine.
@Suite struct SurfaceTests {
  struct Broken: Error, Equatable {}

  typealias Numbers = AnyPublisher<Int, Never>
  typealias Fallible = AnyPublisher<Int, Broken>

  let numbers: Numbers = [1, 2, 3].publisher.eraseToAnyPublisher()
  let fallible: Fallible = Fail(error: Broken()).eraseToAnyPublisher()

  @Test func aPipelineNeedsNoOtherImport() {
    var received: [Int] = []
    let subject = PassthroughSubject<Int, Never>()
    var bag: Set<AnyCancellable> = []
    subject.map { $0 * 2 }.filter { $0 > 2 }.eraseToAnyPublisher().sink { received.append($0) }.store(
      in: &bag)
    subject.send(1)
    subject.send(2)
    #expect(received == [4])
    var list: [AnyCancellable] = []
    subject.sink { received.append($0) }.store(in: &list)
    #expect(list.count == 1)
  }

  @Test func sources() {
    let _: Just<Int> = Just(1)
    let _: Empty<Int, Broken> = Empty(completeImmediately: false)
    let _ = Empty(completeImmediately: true, outputType: Int.self, failureType: Broken.self)
    let _: Fail<Int, Broken> = Fail(error: Broken())
    let _ = Fail(outputType: Int.self, failure: Broken())
    let _: Deferred<Just<Int>> = Deferred { Just(1) }
    let _: Future<Int, Broken> = Future { promise in promise(.success(1)) }
    let _: Publishers.Sequence<[Int], Never> = [1].publisher
    let _ = Publishers.Sequence<[Int], Broken>(sequence: [1])
    let _: Optional<Int>.Publisher = Optional(1).publisher
    let _ = Int?.Publisher(nil)
    let _: Result<Int, Broken>.Publisher = Result<Int, Broken>.success(1).publisher
    let _ = Result<Int, Broken>.Publisher(1)
    let _ = Result<Int, Broken>.Publisher(Broken())
    let _ = Result<Int, Broken>.Publisher(.failure(Broken()))
    let _: AnyPublisher<Int, Never> = AnyPublisher(Just(1))
  }

  @Test func mapping() {
    let _: Publishers.Map<Numbers, String> = numbers.map { "\($0)" }
    let _: Publishers.TryMap<Numbers, String> = numbers.tryMap { "\($0)" }
    let _: Publishers.MapError<Fallible, CancellationError> = fallible.mapError { _ in CancellationError() }
    let _: Publishers.CompactMap<Numbers, Int> = numbers.compactMap { Optional($0) }
    let _: Publishers.TryCompactMap<Numbers, Int> = numbers.tryCompactMap { Optional($0) }
    let _: Publishers.Scan<Numbers, String> = numbers.scan("") { "\($0)\($1)" }
    let _: Publishers.TryScan<Numbers, String> = numbers.tryScan("") { "\($0)\($1)" }
    let _: Publishers.SetFailureType<Numbers, Broken> = numbers.setFailureType(to: Broken.self)
    let optionals = numbers.map { Optional($0) }.eraseToAnyPublisher()
    let _: Publishers.Map<AnyPublisher<Int?, Never>, Int> = optionals.replaceNil(with: 0)
    let _: Publishers.FlatMap<Just<Int>, Numbers> = numbers.flatMap { Just($0) }
    let _: Publishers.FlatMap<Just<Int>, Numbers> = numbers.flatMap(maxPublishers: .max(1)) { Just($0) }
    let _: Publishers.FlatMap<Publishers.SetFailureType<Just<Int>, Broken>, Fallible> =
      fallible.flatMap { Just($0).setFailureType(to: Broken.self) }
  }

  @Test func filtering() {
    let _: Publishers.Filter<Numbers> = numbers.filter { $0 > 1 }
    let _: Publishers.TryFilter<Numbers> = numbers.tryFilter { $0 > 1 }
    let _: Publishers.RemoveDuplicates<Numbers> = numbers.removeDuplicates()
    let _: Publishers.RemoveDuplicates<Numbers> = numbers.removeDuplicates { $0 == $1 }
    let _: Publishers.TryRemoveDuplicates<Numbers> = numbers.tryRemoveDuplicates { $0 == $1 }
    let _: Publishers.Drop<Numbers> = numbers.dropFirst()
    let _: Publishers.Drop<Numbers> = numbers.dropFirst(2)
    let _: Publishers.DropWhile<Numbers> = numbers.drop { $0 < 2 }
    let _: Publishers.TryDropWhile<Numbers> = numbers.tryDrop { $0 < 2 }
    let _: Publishers.Output<Numbers> = numbers.prefix(2)
    let _: Publishers.Output<Numbers> = numbers.output(at: 2)
    let _: Publishers.Output<Numbers> = numbers.output(in: 1..<2)
    let _: Publishers.Output<Numbers> = numbers.output(in: 1...)
    let _: Publishers.PrefixWhile<Numbers> = numbers.prefix { $0 < 2 }
    let _: Publishers.TryPrefixWhile<Numbers> = numbers.tryPrefix { $0 < 2 }
  }

  @Test func reducing() {
    let _: Publishers.Collect<Numbers> = numbers.collect()
    let _: Publishers.Count<Numbers> = numbers.count()
    let _: Publishers.IgnoreOutput<Numbers> = numbers.ignoreOutput()
    let _: Publishers.Reduce<Numbers, String> = numbers.reduce("") { "\($0)\($1)" }
    let _: Publishers.TryReduce<Numbers, String> = numbers.tryReduce("") { "\($0)\($1)" }
    let _: Publishers.Comparison<Numbers> = numbers.max()
    let _: Publishers.Comparison<Numbers> = numbers.min()
    let _: Publishers.Comparison<Numbers> = numbers.max(by: <)
    let _: Publishers.Comparison<Numbers> = numbers.min(by: <)
    let _: Publishers.TryComparison<Numbers> = numbers.tryMax { $0 < $1 }
    let _: Publishers.TryComparison<Numbers> = numbers.tryMin { $0 < $1 }
    let _: Publishers.Contains<Numbers> = numbers.contains(1)
    let _: Publishers.ContainsWhere<Numbers> = numbers.contains { $0 > 1 }
    let _: Publishers.TryContainsWhere<Numbers> = numbers.tryContains { $0 > 1 }
    let _: Publishers.AllSatisfy<Numbers> = numbers.allSatisfy { $0 > 1 }
    let _: Publishers.TryAllSatisfy<Numbers> = numbers.tryAllSatisfy { $0 > 1 }
    let _: Publishers.First<Numbers> = numbers.first()
    let _: Publishers.FirstWhere<Numbers> = numbers.first { $0 > 1 }
    let _: Publishers.TryFirstWhere<Numbers> = numbers.tryFirst { $0 > 1 }
    let _: Publishers.Last<Numbers> = numbers.last()
    let _: Publishers.LastWhere<Numbers> = numbers.last { $0 > 1 }
    let _: Publishers.TryLastWhere<Numbers> = numbers.tryLast { $0 > 1 }
  }

  @Test func sharing() {
    let _: Publishers.Share<Numbers> = numbers.share()
    typealias Multicast = Publishers.Multicast<Numbers, PassthroughSubject<Int, Never>>
    let multicast: Multicast = numbers.multicast { PassthroughSubject() }
    let _: Multicast = numbers.multicast(subject: PassthroughSubject())
    let connection: any Cancellable = multicast.connect()
    connection.cancel()
    let _: Publishers.Autoconnect<Multicast> = multicast.autoconnect()
  }

  @Test func watchingAndWaiting() async throws {
    let _: Publishers.HandleEvents<Numbers> = numbers.handleEvents()
    let _: Publishers.HandleEvents<Numbers> = numbers.handleEvents(
      receiveSubscription: { _ in }, receiveOutput: { _ in }, receiveCompletion: { _ in }, receiveCancel: {},
      receiveRequest: { _ in })
    let _: Publishers.Buffer<Numbers> = numbers.buffer(size: 1, prefetch: .byRequest, whenFull: .dropNewest)
    let _ = numbers.buffer(size: 1, prefetch: .keepFull, whenFull: .dropOldest)
    let _ = fallible.buffer(size: 1, prefetch: .keepFull, whenFull: .customError { Broken() })
    let scheduler = ImmediateScheduler.shared
    let _: Publishers.ReceiveOn<Numbers, ImmediateScheduler> = numbers.receive(on: scheduler)
    let _ = numbers.receive(on: scheduler, options: nil)
    let values: AsyncPublisher<Numbers> = numbers.values
    var received: [Int] = []
    for await value in values { received.append(value) }
    #expect(received == [1, 2, 3])
    let throwing: AsyncThrowingPublisher<Fallible> = fallible.values
    await #expect(throws: Broken.self) { for try await _ in throwing {} }
  }

  @Test func subscribing() {
    final class Target { var number = 0 }
    let target = Target()
    let _: AnyCancellable = numbers.sink { _ in }
    let _: AnyCancellable = fallible.sink(receiveCompletion: { _ in }, receiveValue: { _ in })
    let _: AnyCancellable = numbers.assign(to: \.number, on: target)
    #expect(target.number == 3)
    numbers.subscribe(Subscribers.Sink(receiveCompletion: { _ in }, receiveValue: { _ in }))
    numbers.subscribe(Subscribers.Assign(object: target, keyPath: \.number))
    numbers.subscribe(AnySubscriber(receiveSubscription: { $0.request(.unlimited) }))
    let subject = PassthroughSubject<Int, Never>()
    let _: AnyCancellable = numbers.subscribe(subject)
    let _ = AnySubscriber(subject)
    let _ = AnySubscriber(Subscribers.Sink<Int, Never>(receiveCompletion: { _ in }, receiveValue: { _ in }))
    let subscription: any Subscription = Subscriptions.empty
    subscription.cancel()
    let cancellable = AnyCancellable {}
    let _ = AnyCancellable(cancellable)
    #expect(CombineIdentifier() != CombineIdentifier(target))
  }

  @Test func subjects() {
    let passthrough = PassthroughSubject<Void, Broken>()
    passthrough.send()
    passthrough.send(())
    passthrough.send(completion: .failure(Broken()))
    let current = CurrentValueSubject<Int, Never>(1)
    current.send(2)
    current.value += 1
    #expect(current.value == 3)
    current.send(subscription: Subscriptions.empty)
    current.send(completion: .finished)
    let some: any Subject<Int, Never> = current
    some.send(4)
  }

  @Test func demandAndCompletion() {
    var demand: Subscribers.Demand = .max(1) + .max(2) - 1
    demand += 1
    demand *= 2
    demand -= .max(1)
    #expect(demand == 5 && demand * 2 == 10 && demand > 4 && demand < .unlimited && demand.max == 5)
    #expect(Subscribers.Demand.unlimited.max == nil && Subscribers.Demand.none == .max(0))
    #expect(Subscribers.Completion<Broken>.finished != .failure(Broken()))
  }
}
