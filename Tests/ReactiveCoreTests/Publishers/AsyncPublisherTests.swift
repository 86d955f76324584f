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
      let watched = subject.value.handleEvents(receiveCancel: { history.value.append(.cancelled) })
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

  @Test func nothingIsAskedForAfterTheTaskIsCancelled() async {
    let source = UncheckedBox(ManualPublisher<Int, Never>())
    let task = Task {
      var iterator = source.value.values.makeAsyncIterator()
      var results = [await iterator.next()]
      results.append(await iterator.next())
      results.append(await iterator.next())
      return results
    }
    while source.value.history.events.isEmpty { await Task.yield() }
    source.value.send(1)
    while source.value.history.events.count < 2 { await Task.yield() }
    task.cancel()
    #expect(await task.value == [1, nil, nil])
    #expect(source.value.history.events == [.requested(.max(1)), .requested(.max(1)), .cancelled])
  }

  @Test func eachConsumerOfTheValuesHasASubscriptionOfItsOwn() async {
    let values = (1...100).publisher.values
    let sums = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          var sum = 0
          for await value in values { sum += value }
          return sum
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(sums == Array(repeating: 5050, count: 8))
  }

  @Test func consumersThatShareAnIteratorShareItsSubscription() async {
    let source = UncheckedBox((1...1000).publisher.values.makeAsyncIterator())
    let received = await withTaskGroup(of: [Int].self) { group in
      for _ in 0..<4 {
        group.addTask {
          var iterator = source.value
          var values: [Int] = []
          while let value = await iterator.next() { values.append(value) }
          return values
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(received.sorted() == Array(1...1000))
  }

  @Test func cancellingOneConsumerLeavesTheOthers() async {
    let subject = UncheckedBox(CurrentValueSubject<Int, Never>(0))
    let received = EventLog<Int>()
    let patient = Task { for await value in subject.value.values { received.append(value) } }
    let hasty = Task { for await _ in subject.value.values {} }
    #expect(await received.wait(count: 1))
    hasty.cancel()
    await hasty.value
    for number in 1...3 {
      subject.value.send(number)
      #expect(await received.wait(count: number + 1))
    }
    subject.value.send(completion: .finished)
    await patient.value
    #expect(received.events == [0, 1, 2, 3])
  }

  @Test func aBufferKeepsWhatComesWhileTheConsumerIsBusy() async {
    let subject = UncheckedBox(PassthroughSubject<Int, Never>())
    var iterator = subject.value
      .buffer(size: 10, prefetch: .byRequest, whenFull: .dropNewest).values.makeAsyncIterator()
    for number in 1...5 { subject.value.send(number) }
    subject.value.send(completion: .finished)
    var values: [Int] = []
    while let value = await iterator.next() { values.append(value) }
    #expect(values == [1, 2, 3, 4, 5])
  }
}
