import Foundation
import CombineExtras
import CombineExtras
import PortableCombine
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The additions of `CombineExtras` to Combine, each overload once.
@Suite struct ExtrasSurfaceTests {
  struct Broken: Error, Equatable {}

  typealias Numbers = AnyPublisher<Int, Never>

  let numbers: Numbers = [1, 2, 3].publisher.eraseToAnyPublisher()

  @Test func replaying() {
    expectType(
      of: numbers.share(replay: 1, scope: .forever), is: Publishers.ShareReplay<Numbers>.self)
    expectType(
      of: numbers.share(replay: 1, scope: .whileConnected), is: Publishers.ShareReplay<Numbers>.self)
    _ = Publishers.ShareReplay(upstream: numbers, bufferSize: 2, scope: .forever)
    let subject: any Subject<Int, Broken> = ReplaySubject<Int, Broken>(bufferSize: 2)
    subject.send(1)
    _ = ReplaySubject<Int, Never>()
  }

  @Test func unwrapping() {
    let optionals: AnyPublisher<Int?, Never> = [1, nil].publisher.eraseToAnyPublisher()
    expectType(of: optionals.unwrap(), is: Publishers.CompactMap<AnyPublisher<Int?, Never>, Int>.self)
  }

  @Test func ticking() {
    let timer = Publishers.timer(queue: .main, interval: .seconds(60), leeway: .seconds(1), times: .max(3))
    expectType(of: timer, is: Publishers.DispatchTimer.self)
    let _: any Publisher<DispatchTime, Never> = timer
    let configuration = DispatchTimerConfiguration(
      queue: nil, interval: .seconds(60), leeway: .nanoseconds(0), times: .unlimited)
    #expect(Publishers.DispatchTimer(configuration: configuration).configuration.times == .unlimited)
  }

  @Test func pausing() {
    var values: [Int] = []
    let sink: PausableCancellable = numbers.pausableSink {
      values.append($0)
      return false
    }
    #expect(sink.isPaused && sink.paused && values == [1])
    let pausable: any Pausable & Cancellable = sink
    pausable.resume()
    #expect(values == [1, 2])
    sink.cancel()
    _ = Subscribers.PausableSink<Int, Never>(receiveCompletion: { _ in }, receiveValue: { _ in true })
  }

  @Test func decodedResponses() throws {
    let url = try #require(URL(string: "http://localhost/"))
    let session = URLSession.shared
    typealias P = URLSession.DecodedDataTaskPublisher<[Int], JSONDecoder>
    let _: P = session.decodedDataTaskPublisher(for: url, decoder: JSONDecoder())
    let _: P = session.decodedDataTaskPublisher(for: URLRequest(url: url), decoder: JSONDecoder())
    expectType(of: session.decodedDataTaskPublisher(for: url, as: [Int].self), is: P.self)
    let _: P = session.decodedDataTaskPublisher(for: URLRequest(url: url))
    expectType(
      of: session.decodedDataTaskPublisher(for: url, as: [Int].self, decoder: JSONDecoder()), is: P.self)
    let _: any Publisher<[Int], DecodedDataTaskError> = P(
      request: URLRequest(url: url), session: session, decoder: JSONDecoder())
  }

  @Test func asynchronousSequences() {
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    expectType(of: stream.publisher, is: AsyncSequencePublisher<AsyncStream<Int>>.self)
    let _: any Publisher<Int, Never> = AsyncSequencePublisher(stream)
    continuation.finish()
  }

  @Test func effects() {
    typealias E = Effect<Int, Never>
    expectType(of: numbers.eraseToEffect(), is: E.self)
    let effect: E = .merge(
      .none, .fireAndForget {}, .sync { 1 }, .future { $0(.success(2)) }, .cancel(id: "b"))
    var values: [Int] = []
    _ = E.concatenate(effect, effect.map { $0 * 10 }).cancellable(id: "a").sink { values.append($0) }
    #expect(values == [1, 2, 10, 20])
    expectType(
      of: effect.debounce(id: 1, for: 1, scheduler: ImmediateScheduler.shared), is: E.self)
    let scope = EffectScope()
    scope.cancel(id: 1)
    #expect(!scope.isInFlight(id: 1))
    let store = Store<Int, Int>(initialState: 0, scope: scope) { state, action in
      state += action
      return action < 3 ? [.sync { action + 1 }] : []
    }
    store.send(1)
    #expect(store.state == 6 && store.effectsInFlight == 0)
    let _: AnyPublisher<Int, Never> = store.publisher
  }

  @Test func reducers() {
    let count = Reducer<Int, Int> { state, action in
      state += action
      return []
    }
    expectType(of: Reducer.combine(count, count), is: Reducer<Int, Int>.self)
    expectType(
      of: count.pullback(state: \[Int].[0], action: { (text: String) in Int(text) }, embed: { "\($0)" }),
      is: Reducer<[Int], String>.self)
    expectType(of: count.logging { _ in }, is: Reducer<Int, Int>.self)
    let store = Store(initialState: 1, reducer: count)
    store.send(2)
    #expect(store.state == 3)
  }

  @Test func whatMayBeSentToOtherThreads() async {
    func send<T: Sendable>(_ value: T) {}
    let replay = ReplaySubject<Int, Never>(bufferSize: 1)
    await Task.detached { replay.send(3) }.value
    var values: [Int] = []
    _ = replay.sink { values.append($0) }
    #expect(values == [3])
    send(numbers.pausableSink { _ in true })
    send(numbers.share(replay: 1, scope: .forever))
    send(Reducer<Int, Int> { _, _ in [] })
  }
}
