import Foundation
import PortableCombine
import Testing

/// Properties that publish, objects that are observed, and values from publishers without a subscriber.
@Suite struct ObservationSurfaceTests {
  struct Broken: Error, Equatable {}

  final class Counter: ObservableObject {
    @Published var count = 0
    @Published private(set) var title: String?
    @Published(initialValue: 3) var limit: Int
  }

  final class Manual: ObservableObject {
    let objectWillChange = PassthroughSubject<Int, Never>()
  }

  @Test func observedObjects() {
    let counter = Counter()
    var changes = 0
    let publisher: ObservableObjectPublisher = counter.objectWillChange
    let subscription = publisher.sink { changes += 1 }
    counter.count += 1
    counter.limit = 4
    #expect(changes == 2)
    publisher.send()
    #expect(changes == 3)
    subscription.cancel()
    let _: PassthroughSubject<Int, Never> = Manual().objectWillChange
    func watch<O: ObservableObject>(_ object: O) -> AnyCancellable { object.objectWillChange.sink { _ in } }
    watch(counter).cancel()
  }

  @Test func publishedProperties() {
    let counter = Counter()
    let _: Published<Int>.Publisher = counter.$count
    var values: [Int] = []
    let subscription = counter.$count.sink { values.append($0) }
    [5, 6].publisher.eraseToAnyPublisher().assign(to: &counter.$count)
    #expect(values == [0, 5, 6] && counter.count == 6)
    subscription.cancel()
    var title: String? = "unset"
    _ = counter.$title.sink { title = $0 }
    #expect(title == nil)
    _ = Published(wrappedValue: 1)
    _ = Published(initialValue: 1)
  }

  @Test func keyPaths() {
    typealias Words = AnyPublisher<String, Never>
    let words: Words = Just("abc").eraseToAnyPublisher()
    expectType(of: words.map(\.count), is: Publishers.MapKeyPath<Words, Int>.self)
    expectType(of: words.map(\.count, \.isEmpty), is: Publishers.MapKeyPath2<Words, Int, Bool>.self)
    expectType(
      of: words.map(\.count, \.isEmpty, \.first),
      is: Publishers.MapKeyPath3<Words, Int, Bool, Character?>.self)
    let _: any Publisher<(Int, Bool), Never> = words.map(\.count, \.isEmpty)
    #expect(words.map(\.count).keyPath == \String.count)
    #expect(words.map(\.count, \.isEmpty).keyPath1 == \String.isEmpty)
    #expect(words.map(\.count, \.isEmpty, \.first).keyPath2 == \String.first)
  }

  @Test func encodingAndDecoding() throws {
    typealias Numbers = AnyPublisher<[Int], Never>
    let numbers: Numbers = Just([1, 2]).eraseToAnyPublisher()
    let encoded = numbers.encode(encoder: JSONEncoder())
    expectType(of: encoded, is: Publishers.Encode<Numbers, JSONEncoder>.self)
    let _: any Publisher<Data, any Error> = encoded
    typealias Encoded = Publishers.Encode<Numbers, JSONEncoder>
    expectType(
      of: encoded.decode(type: [Int].self, decoder: JSONDecoder()),
      is: Publishers.Decode<Encoded, [Int], JSONDecoder>.self)
    expectType(
      of: numbers.encode(encoder: PropertyListEncoder()),
      is: Publishers.Encode<Numbers, PropertyListEncoder>.self)
    var decoded: [Int] = []
    _ = encoded.decode(type: [Int].self, decoder: JSONDecoder()).replaceError(with: []).sink { decoded = $0 }
    #expect(decoded == [1, 2])
    func code<E: TopLevelEncoder<Data>, D: TopLevelDecoder<Data>>(_ encoder: E, _ decoder: D) throws -> Int {
      try decoder.decode([Int].self, from: encoder.encode([7]))[0]
    }
    #expect(try code(JSONEncoder(), JSONDecoder()) == 7)
    #expect(try code(PropertyListEncoder(), PropertyListDecoder()) == 7)
  }

  @Test func records() throws {
    let record = Record<Int, Broken> { recording in
      recording.receive(1)
      recording.receive(completion: .failure(Broken()))
    }
    #expect(record.recording.output == [1] && record.recording.completion == .failure(Broken()))
    _ = Record<Int, Broken>(output: [1], completion: .finished)
    var recording = Record<Int, Broken>.Recording(output: [1, 2], completion: .finished)
    _ = Record(recording: recording)
    recording = Record<Int, Broken>.Recording()
    recording.receive(3)
    #expect(recording.output == [3])
    struct Coded: Error, Codable {}
    let data = try JSONEncoder().encode(Record<Int, Coded>(output: [4], completion: .failure(Coded())))
    #expect(try JSONDecoder().decode(Record<Int, Coded>.self, from: data).recording.output == [4])
  }

  @Test func valuesOfFutures() async throws {
    let safe = Future<Int, Never> { $0(.success(1)) }
    let value: Int = await safe.value
    #expect(value == 1)
    let risky = Future<Int, Broken> { promise in promise(.failure(Broken())) }
    await #expect(throws: Broken.self) { try await risky.value }
    var kept: Future<Int, Never>.Promise?
    let future = Future<Int, Never> { kept = $0 }
    kept?(.success(2))
    #expect(await future.value == 2)
  }

  @Test func asynchronousValues() async throws {
    typealias Numbers = AnyPublisher<Int, Never>
    let numbers: Numbers = [1, 2].publisher.eraseToAnyPublisher()
    expectType(of: numbers.values, is: AsyncPublisher<Numbers>.self)
    let fallible = numbers.setFailureType(to: Broken.self).eraseToAnyPublisher()
    expectType(of: fallible.values, is: AsyncThrowingPublisher<AnyPublisher<Int, Broken>>.self)
    var iterator: AsyncPublisher<Numbers>.Iterator = AsyncPublisher(numbers).makeAsyncIterator()
    #expect(await iterator.next() == 1)
    var throwing: AsyncThrowingPublisher.Iterator = AsyncThrowingPublisher(fallible).makeAsyncIterator()
    #expect(try await throwing.next() == 1)
  }

  @Test func debugging() {
    let numbers: AnyPublisher<Int, Never> = Just(1).eraseToAnyPublisher()
    typealias Numbers = AnyPublisher<Int, Never>
    final class Text: TextOutputStream {
      var text = ""
      func write(_ string: String) { text += string }
    }
    let text = Text()
    expectType(of: numbers.print(), is: Publishers.Print<Numbers>.self)
    expectType(of: numbers.print("here"), is: Publishers.Print<Numbers>.self)
    _ = numbers.print("here", to: text).sink { _ in }
    #expect(text.text.hasPrefix("here: receive subscription: "))
    expectType(of: numbers.breakpoint(), is: Publishers.Breakpoint<Numbers>.self)
    expectType(of: numbers.breakpointOnError(), is: Publishers.Breakpoint<Numbers>.self)
    _ = numbers.breakpoint(
      receiveSubscription: { _ in false }, receiveOutput: { _ in false }, receiveCompletion: { _ in false })
    expectType(of: numbers.makeConnectable(), is: Publishers.MakeConnectable<Numbers>.self)
    let connectable: any ConnectablePublisher<Int, Never> = numbers.makeConnectable()
    connectable.connect().cancel()
  }
}
