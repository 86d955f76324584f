import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AnyCancellableTests {
  final class Counter: Cancellable {
    var count = 0
    func cancel() { count += 1 }
  }

  @Test func cancelsOnce() {
    var count = 0
    do {
      let cancellable = AnyCancellable { count += 1 }
      cancellable.cancel()
      cancellable.cancel()
    }
    #expect(count == 1)
  }

  @Test func cancelsWhenReleased() {
    let counter = Counter()
    do {
      let cancellable = AnyCancellable(counter)
      withExtendedLifetime(cancellable) {}
      #expect(counter.count == 0)
    }
    #expect(counter.count == 1)
  }

  @Test func letsGoOfItsActionOnCancellation() {
    weak var weakCounter: Counter?
    let cancellable: AnyCancellable
    do {
      let counter = Counter()
      weakCounter = counter
      cancellable = AnyCancellable(counter)
    }
    #expect(weakCounter != nil)
    cancellable.cancel()
    #expect(weakCounter == nil)
  }

  @Test func isKeptInSetsAndCollections() {
    let counter = Counter()
    var set: Set<AnyCancellable> = []
    var array: [AnyCancellable] = []
    AnyCancellable(counter).store(in: &set)
    AnyCancellable(counter).store(in: &array)
    counter.store(in: &set)
    counter.store(in: &array)
    #expect(set.count == 2)
    #expect(array.count == 2)
    set = []
    #expect(counter.count == 2)
    array = []
    #expect(counter.count == 4)
  }

  @Test func crossesThreads() async {
    for _ in 0..<100 {
      let counter = Counter()
      let cancellable = AnyCancellable(counter)
      async let first: Void = cancellable.cancel()
      async let second: Void = cancellable.cancel()
      _ = await (first, second)
      #expect(counter.count == 1)
    }
  }
}
