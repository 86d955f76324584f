import PortableCombine

/// Delivers the elements of an asynchronous sequence on demand, then finishes, or fails with its error.
///
/// Each subscription iterates separately, in a task that runs while there is demand: one call of `next()` for each
/// requested value, and none ahead. Values are delivered from that task. Cancelling cancels the task; what `next()`
/// returns after that is dropped.
public struct AsyncSequencePublisher<Base: AsyncSequence & Sendable>: Publisher, Sendable {
  public typealias Output = Base.Element
  public typealias Failure = Base.Failure

  /// The sequence.
  public let base: Base

  /// A publisher of the elements of a sequence.
  public init(_ base: Base) { self.base = base }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: AsyncIteration(base, downstream: AnySubscriber(subscriber)))
  }
}

extension AsyncSequence where Self: Sendable {
  /// The elements as a publisher, which iterates as fast as its subscriber asks.
  ///
  ///     let (ticks, continuation) = AsyncStream.makeStream(of: Int.self)
  ///     let subscription = ticks.publisher.map { $0 * 2 }.sink { print($0) }
  ///     continuation.yield(21)  // 42
  public var publisher: AsyncSequencePublisher<Self> { AsyncSequencePublisher(self) }
}

/// One iteration.
private final class AsyncIteration<Base: AsyncSequence & Sendable>: Subscription, CustomStringConvertible,
  CustomReflectable, CustomPlaygroundDisplayConvertible, @unchecked Sendable
{
  // Sendable because the lock guards the state, and the iterator belongs to the one task that runs.

  typealias Downstream = AnySubscriber<Base.Element, Base.Failure>

  private let base: Base

  private let lock = Lock()
  // Guarded by the lock.
  private var iterator: Base.AsyncIterator?  // while no task has it
  private var downstream: Downstream?
  private var demand = Subscribers.Demand.none
  private var isRunning = false
  private var task: Task<Void, Never>?

  init(_ base: Base, downstream: Downstream) {
    self.base = base
    self.downstream = downstream
  }

  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    lock.withLock {
      guard downstream != nil else { return }
      self.demand += demand
      if isRunning { return }
      isRunning = true
      // Under the lock, so that a cancellation finds this task and no earlier one. It only puts the task in
      // line.
      task = Task { await run() }
    }
  }

  func cancel() { end().task?.cancel() }

  private func end() -> (downstream: Downstream?, task: Task<Void, Never>?) {
    let (downstream, task, iterator) = lock.withLock {
      demand = .none
      return (self.downstream.take(), self.task.take(), self.iterator.take())
    }
    withExtendedLifetime(iterator) {}
    return (downstream, task)
  }

  /// Delivers while there is demand.
  private func run() async {
    var iterator = takeIterator() ?? base.makeAsyncIterator()
    while takeDemand(orLeave: iterator) {
      do throws(Base.Failure) {
        guard let element = try await iterator.next(isolation: nil) else {
          end().downstream?.receive(completion: .finished)
          return
        }
        guard let downstream = lock.withLock({ self.downstream }) else { return }
        add(downstream.receive(element))
      } catch {
        end().downstream?.receive(completion: .failure(error))
        return
      }
    }
  }

  private func takeIterator() -> Base.AsyncIterator? {
    lock.withLock { iterator.take() }
  }

  /// - Returns: Whether there is demand for another element. If not, the next task continues with the iterator.
  private func takeDemand(orLeave iterator: Base.AsyncIterator) -> Bool {
    lock.withLock {
      if demand > 0 {
        demand -= 1
        return true
      }
      if downstream != nil {
        self.iterator = iterator
        isRunning = false
        task = nil
      }
      return false
    }
  }

  private func add(_ more: Subscribers.Demand) {
    lock.withLock { demand += more }
  }

  var description: String { "AsyncSequence" }

  var customMirror: Mirror {
    let (downstream, demand) = lock.withLock { (self.downstream, self.demand) }
    return Mirror(self, children: [("base", base), ("downstream", downstream as Any), ("demand", demand)])
  }

  var playgroundDescription: Any { description }
}
