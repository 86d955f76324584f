import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AsyncPublisherTests {
  @Test func deliversEveryValueInOrder() async {
    var values: [Int] = []
    for await value in (1...1000).publisher.values { values.append(value) }
    #expect(values == Array(1...1000))
  }

  @Test func asksForOneValueAtATime() async {
    let source = ManualPublisher<Int, Never>()
    source.onRequest = { [unowned source] _ in source.send(source.history.events.count) }
    var iterator = source.values.makeAsyncIterator()
    #expect(source.history.events == [])
    #expect(await iterator.next() == 1)
    #expect(source.history.events == [.requested(.max(1))])
    #expect(await iterator.next() == 2)
    #expect(source.history.events == [.requested(.max(1)), .requested(.max(1))])
  }

  @Test func cancelsWhenTheLoopIsLeft() async {
    let source = ManualPublisher<Int, Never>()
    source.onRequest = { [unowned source] _ in source.send(1) }
    for await _ in source.values { break }
    #expect(source.history.events == [.requested(.max(1)), .cancelled])
  }

  @Test func endsWhenTheTaskIsCancelled() async {
    let subject = UncheckedBox(PassthroughSubject<Int, Never>())
    let history = UncheckedBox(History())
    let task = Task {
      let watched = subject.value.handleEvents(receiveCancel: { history.value.events.append(.cancelled) })
      var count = 0
      for await _ in watched.values { count += 1 }
      return count
    }
    task.cancel()
    #expect(await task.value == 0)
    #expect(history.value.events == [.cancelled])
  }

  @Test func throwsTheError() async {
    let source = ManualPublisher<Int, Oops>()
    source.onRequest = { [unowned source] _ in
      if source.history.events.count == 1 {
        source.send(5)
      } else {
        source.send(completion: .failure(Oops(number: 3)))
      }
    }
    var iterator = source.values.makeAsyncIterator()
    #expect(try! await iterator.next() == 5)
    await #expect(throws: Oops(number: 3)) { try await iterator.next() }
    #expect(try! await iterator.next() == nil)
  }

  @Test func anErrorThatComesBeforeItIsAwaitedIsKept() async {
    let source = ManualPublisher<Int, Oops>()
    var iterator = source.values.makeAsyncIterator()
    source.send(completion: .failure(Oops(number: 4)))
    await #expect(throws: Oops(number: 4)) { try await iterator.next() }
    #expect(try! await iterator.next() == nil)
  }

  @Test func waitsForASubscriptionThatComesLate() async {
    let source = ManualPublisher<Int, Never>()
    source.subscribesAtOnce = false
    let box = UncheckedBox(source)
    source.onRequest = { _ in box.value.send(8) }
    let task = Task {
      var iterator = box.value.values.makeAsyncIterator()
      async let subscribing: Void = { while box.value.subscriber == nil { await Task.yield() } }()
      await subscribing
      box.value.sendSubscription()
      return await iterator.next()
    }
    #expect(await task.value == 8)
  }

  @MainActor private static func iterateOnTheMainActor() async throws {
    let (certain, uncertain) = (ManualPublisher<Int, Never>(), ManualPublisher<Int, Oops>())
    certain.onRequest = { [unowned certain] _ in
      MainActor.preconditionIsolated()
      certain.send(1)
    }
    uncertain.onRequest = { [unowned uncertain] _ in
      MainActor.preconditionIsolated()
      uncertain.send(1)
    }
    for await _ in certain.values where certain.history.events.count == 3 { break }
    for try await _ in uncertain.values where uncertain.history.events.count == 3 { break }
  }

  @Test func asksOnTheActorThatIterates() async {
    await #expect(processExitsWith: .success) { try await Self.iterateOnTheMainActor() }
  }

  @Test func keepsThePriorityOfTheTask() async {
    let subject = UncheckedBox(CurrentValueSubject<Int, Never>(0))
    let task = Task(priority: .background) {
      var priorities: Set<UInt8> = []
      for await value in subject.value.values {
        priorities.insert(Task.basePriority?.rawValue ?? 0)
        if value == 10 { break }
        subject.value.send(value + 1)
      }
      return priorities
    }
    #expect(await task.value == [TaskPriority.background.rawValue])
  }

  @Test func anIterationOfACancelledTaskEndsAtOnce() async {
    let source = UncheckedBox(ManualPublisher<Int, Never>())
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      var iterator = source.value.values.makeAsyncIterator()
      return await iterator.next()
    }
    task.cancel()
    #expect(await task.value == nil)
    #expect(source.value.history.events == [.cancelled])
  }
}
