import Dispatch
import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct PausableSinkTests {
  typealias Source = ManualPublisher<Int, Oops>

  let source = Source()
  let history = History()

  func sink(goesOn: @escaping (Int) -> Bool) -> PausableCancellable {
    source.pausableSink(
      receiveCompletion: { [history] in history.append($0 == .finished ? .finished : .failed(Oops()))
      },
      receiveValue: { [history] in
        history.append(.value($0))
        return goesOn($0)
      })
  }

  @Test func theExampleDoesWhatItSays() {
    var printed: [Int] = []
    let pages = (1...).publisher.pausableSink { page in
      printed.append(page)
      return page % 10 != 0
    }
    #expect(printed == Array(1...10))
    #expect(pages.isPaused)
    pages.resume()
    #expect(printed == Array(1...20))
  }

  @Test func asksForOneValueAtATimeAndForNoneWhilePaused() {
    let sink = sink { $0 != 2 }
    #expect(source.history.take() == [.requested(.max(1))])
    #expect(!sink.isPaused)
    #expect(source.send(1) == .max(1))
    #expect(source.send(2) == .none)
    #expect(sink.isPaused)
    #expect(source.history.take() == [])
    sink.resume()
    #expect(!sink.isPaused)
    sink.resume()
    #expect(source.history.take() == [.requested(.max(1))])
    #expect(source.send(3) == .max(1))
    #expect(history.take() == [.value(1), .value(2), .value(3)])
  }

  @Test func doesNotTakeWhatItHasNotAskedFor() {
    let sink = sink { _ in false }
    source.send(1)
    #expect(source.send(2) == .none)
    #expect(history.take() == [.value(1)])
    sink.resume()
    source.send(3)
    #expect(history.take() == [.value(3)])
  }

  @Test func aResumptionDuringTheFunctionIsNotLost() {
    var resume: () -> Void = {}
    let sink = sink { _ in
      resume()
      return false
    }
    resume = { sink.resume() }
    _ = source.history.take()
    #expect(source.send(1) == .max(1))
    #expect(!sink.isPaused)
    resume = {}
    #expect(source.send(2) == .none)
    #expect(sink.isPaused)
    #expect(source.history.take() == [])
  }

  @Test(arguments: [true, false]) func theCompletionDoesNotWait(fails: Bool) {
    let sink = sink { _ in false }
    source.send(1)
    source.send(completion: fails ? .failure(Oops()) : .finished)
    source.send(completion: .finished)
    source.send(2)
    _ = source.history.take()
    sink.resume()
    sink.cancel()
    #expect(!sink.isPaused)
    #expect(history.take() == [.value(1), fails ? .failed(Oops()) : .finished])
    #expect(source.history.take() == [])
  }

  @Test func cancelsOnceAndWhenReleased() {
    do {
      let sink = sink { _ in true }
      sink.cancel()
      sink.cancel()
      #expect(source.history.take() == [.requested(.max(1)), .cancelled])
      source.send(1)
      source.send(completion: .finished)
      source.sendSubscription()
      #expect(source.history.take() == [.cancelled])
    }
    do {
      let other = sink { _ in true }
      withExtendedLifetime(other) {}
    }
    #expect(source.history.take() == [.requested(.max(1)), .cancelled])
    #expect(history.take() == [])
  }

  @Test func cancellingFromWithinAValueTakesEffectAtOnce() {
    var cancel: () -> Void = {}
    let sink = sink { _ in
      cancel()
      return true
    }
    cancel = { sink.cancel() }
    source.send(1)
    source.send(2)
    #expect(history.take() == [.value(1)])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let sink = sink { _ in true }
    source.sendSubscription()
    #expect(source.history.take() == [.requested(.max(1)), .cancelled])
    withExtendedLifetime(sink) {}
  }

  enum Ending: CaseIterable { case finish, failure, cancel }

  @Test(arguments: Ending.allCases) func releasesItsFunctions(end: Ending) {
    final class Token {}
    weak var weakToken: Token?
    let sink: PausableCancellable
    do {
      let token = Token()
      weakToken = token
      sink = self.sink { _ in
        withExtendedLifetime(token) {}
        return true
      }
    }
    #expect(weakToken != nil)
    switch end {
    case .finish: source.send(completion: .finished)
    case .failure: source.send(completion: .failure(Oops()))
    case .cancel: sink.cancel()
    }
    #expect(weakToken == nil)
    withExtendedLifetime(sink) {}
  }

  @Test func describesItself() {
    let sink = Subscribers.PausableSink<Int, Never>(receiveCompletion: { _ in }, receiveValue: { _ in true })
    #expect(sink.description == "PausableSink")
    #expect(sink.customMirror.children.isEmpty)
  }

  @Test func isResumedByAnotherThreadHoweverTheyMeet() async {
    let log = EventLog<Int>()
    let pausable = Mutex<PausableCancellable?>(nil)
    let queue = DispatchQueue(label: "resume")
    let sink = (1...10_000).publisher.pausableSink { number in
      queue.async {
        pausable.withLock { $0 }?.resume()
      }
      if number == 10_000 { log.append(number) }
      return false
    }
    pausable.withLock { $0 = sink }
    sink.resume()
    #expect(await log.wait(count: 1))
    pausable.withLock { $0 = nil }
  }
}
