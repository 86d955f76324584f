import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

// The code of the article AsyncBridges.

/// A channel: `send` returns when a consumer has taken the value.
protocol Channel<Element>: AsyncSequence, Sendable where Element: Sendable, Failure == Never {
  func send(_ element: Element) async
  func finish()
}

extension Publisher where Output: Sendable, Failure == Never {
  /// Sends the values to a channel, then finishes it. Asks for a value once a consumer of the channel has taken the last.
  func send<C: Channel>(to channel: C) async where C.Element == Output {
    for await value in values {
      await channel.send(value)
    }
    channel.finish()
  }
}

/// A channel without a buffer: `send` and `next()` wait for each other.
final class Rendezvous<Element: Sendable>: Channel {
  typealias Failure = Never
  typealias Sender = (element: Element, continuation: CheckedContinuation<Void, Never>)
  typealias Receiver = CheckedContinuation<Element?, Never>

  private struct State {
    var senders: [Sender] = []
    var receivers: [Receiver] = []
    var isFinished = false
    var calls = 0
  }

  private let state = Mutex(State())

  /// How often a value was requested.
  var calls: Int { state.withLock { $0.calls } }

  func send(_ element: Element) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let (receiver, waits): (Receiver?, Bool) = state.withLock { state in
        if !state.receivers.isEmpty { return (state.receivers.removeFirst(), false) }
        if state.isFinished { return (nil, false) }
        state.senders.append((element, continuation))
        return (nil, true)
      }
      receiver?.resume(returning: element)
      if !waits { continuation.resume() }
    }
  }

  func finish() {
    let receivers = state.withLock { state in
      state.isFinished = true
      defer { state.receivers = [] }
      return state.receivers
    }
    for receiver in receivers { receiver.resume(returning: nil) }
  }

  func makeAsyncIterator() -> Iterator { Iterator(channel: self) }

  struct Iterator: AsyncIteratorProtocol {
    let channel: Rendezvous

    func next(isolation actor: isolated (any Actor)?) async -> Element? { await channel.next() }
    func next() async -> Element? { await channel.next() }
  }

  private func next() async -> Element? {
    await withCheckedContinuation { (continuation: Receiver) in
      let (sender, waits): (Sender?, Bool) = state.withLock { state in
        state.calls += 1
        if !state.senders.isEmpty { return (state.senders.removeFirst(), false) }
        if state.isFinished { return (nil, false) }
        state.receivers.append(continuation)
        return (nil, true)
      }
      sender?.continuation.resume()
      if !waits { continuation.resume(returning: sender?.element) }
    }
  }
}

@Suite struct AsyncBridgeTests {
  typealias Recorder = AsyncSequencePublisherTests.Recorder<Never>

  @Test func aChannelGetsAValueWhenTheLastOneIsTaken() async {
    let requests = EventLog<Subscribers.Demand>()
    let channel = Rendezvous<Int>()
    let sending = Task {
      await (1...100).publisher.handleEvents(receiveRequest: { requests.append($0) }).send(to: channel)
    }
    let iterator = channel.makeAsyncIterator()
    var taken = 0
    while let value = await iterator.next() {
      taken += 1
      #expect(value == taken)
      // One for each value that was taken, and one for the value that waits in `send`, if any.
      let count = requests.events.count
      #expect(count == taken || count == taken + 1)
    }
    await sending.value
    #expect(taken == 100)
    #expect(requests.events == Array(repeating: .max(1), count: 100))
  }

  @Test func aPublisherTakesFromAChannelWhatIsAskedFor() async {
    let channel = Rendezvous<Int>()
    let recorder = Recorder()
    channel.publisher.subscribe(recorder)
    let sending = Task {
      for number in 1...3 { await channel.send(number) }
      channel.finish()
    }
    recorder.subscription.request(.max(2))
    #expect(await recorder.log.wait(count: 3))
    #expect(channel.calls == 2)
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 4))
    #expect(channel.calls == 3)
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 5))
    #expect(recorder.log.events == ["AsyncSequence", "1", "2", "3", "finished"])
    await sending.value
  }

  @Test func valuesKeepTheirOrderThroughAChannelAndBack() async {
    let channel = Rendezvous<Int>()
    let recorder = Recorder(perValue: .max(1))
    channel.publisher.subscribe(recorder)
    recorder.subscription.request(.max(1))
    await (1...1000).publisher.send(to: channel)
    #expect(await recorder.log.wait { $0.last == "finished" })
    #expect(recorder.log.events == ["AsyncSequence"] + (1...1000).map(String.init) + ["finished"])
    #expect(channel.calls == 1001)
  }

  @Test func severalPublishersOfOneChannelShareItsValues() async {
    let channel = Rendezvous<Int>()
    let recorders = (0..<4).map { _ in Recorder(perValue: .max(1)) }
    for recorder in recorders {
      channel.publisher.subscribe(recorder)
      recorder.subscription.request(.max(1))
    }
    await (1...200).publisher.send(to: channel)
    var values: [Int] = []
    for recorder in recorders {
      #expect(await recorder.log.wait { $0.last == "finished" })
      values += recorder.log.events.compactMap { Int($0) }
    }
    #expect(values.sorted() == Array(1...200))
  }

  @Test func cancellingTheTaskThatFeedsAChannelCancelsThePublisher() async {
    let log = EventLog<String>()
    let channel = Rendezvous<Int>()
    let source = UncheckedBox(PassthroughSubject<Int, Never>())
    let sending = Task {
      await source.value.handleEvents(
        receiveCancel: { log.append("cancelled") }, receiveRequest: { _ in log.append("asked") }
      ).send(to: channel)
    }
    #expect(await log.wait(count: 1))
    sending.cancel()
    await sending.value
    #expect(log.events == ["asked", "cancelled"])
    // The channel is finished, which ends all waits for it.
    for await _ in channel {}
  }
}
