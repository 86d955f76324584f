import ReactiveCore
import Testing

/// The common behaviour of every operator that passes requests on, when it is called back from within a call, or its source
/// delivers at once.
///
/// - Parameters:
///   - name: The description of the subscription.
///   - value: The value to send; must pass whenever it is sent.
package func expectStreamWithstandsReentrancy<Operator: Publisher>(
  named name: String, sending value: Int = 1, sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  typealias Subscriber = TrackingSubscriber<Operator.Output, Operator.Failure>

  func check(
    _ title: Comment, _ expected: [Happening], demand: Subscribers.Demand? = .max(2),
    prepare: (ManualPublisher<Int, Oops>, Subscriber) -> Void,
    act: (ManualPublisher<Int, Oops>) -> Void = { _ in }
  ) {
    let source = ManualPublisher<Int, Oops>()
    let subscriber = Subscriber(demand, history: source.history)
    prepare(source, subscriber)
    makeOperator(source).subscribe(subscriber)
    act(source)
    let events = source.history.events.map { event in
      if case .value = event { return Happening.value("any") } else { return event }
    }
    #expect(events == [.subscription(name)] + expected, title, sourceLocation: sourceLocation)
    subscriber.subscription = nil
    source.onRequest = { _ in }
    source.onCancel = {}
  }

  check("cancelling within the subscription", [.cancelled], demand: nil) { _, subscriber in
    subscriber.onSubscription = { $0.cancel() }
  } act: {
    $0.send(value)
    $0.send(completion: .finished)
  }
  check("a value sent within the request passes", [.requested(.max(2)), .value("any")]) { source, _ in
    source.onRequest = { [unowned source] _ in source.send(value) }
  }
  check("a source may finish within the request", [.requested(.max(2)), .finished]) { source, _ in
    source.onRequest = { [unowned source] _ in source.send(completion: .finished) }
  }
  check(
    "a request within a value passes", [.requested(.max(2)), .value("any"), .requested(.max(3))]
  ) { _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.request(.max(3)) }
  } act: {
    $0.send(value)
  }
  check(
    "cancelling within a value ends it", [.requested(.max(2)), .value("any"), .cancelled]
  ) { _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
  } act: {
    $0.send(value)
    $0.send(value)
    $0.send(completion: .failure(Oops()))
  }
  check(
    "a source that finishes within a value finishes once",
    [.requested(.max(2)), .value("any"), .finished]
  ) { source, subscriber in
    subscriber.onValue = { [unowned source] _ in source.send(completion: .finished) }
  } act: {
    $0.send(value)
    $0.send(value)
    $0.send(completion: .finished)
  }
  check("cancelling within the completion is too late", [.requested(.max(2)), .finished]) { _, subscriber in
    subscriber.onCompletion = { [unowned subscriber] in subscriber.subscription?.cancel() }
  } act: {
    $0.send(completion: .finished)
  }
}

/// The common behaviour of every operator that passes on the subscription of its source, when it is called back from within a
/// call, or its source delivers at once.
package func expectTransparentStreamWithstandsReentrancy<Operator: Publisher>(
  sending value: Int = 1, sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  typealias Subscriber = TrackingSubscriber<Operator.Output, Operator.Failure>

  func check(
    _ title: Comment, _ expected: [Happening], demand: Subscribers.Demand? = .max(2),
    prepare: (ManualPublisher<Int, Oops>, Subscriber) -> Void
  ) {
    let source = ManualPublisher<Int, Oops>()
    let subscriber = Subscriber(demand, history: source.history)
    prepare(source, subscriber)
    makeOperator(source).subscribe(subscriber)
    source.send(value)
    let events = source.history.events.map { event in
      if case .value = event { return Happening.value("any") } else { return event }
    }
    #expect(events == [.subscription("Manual")] + expected, title, sourceLocation: sourceLocation)
    subscriber.subscription = nil
    source.onRequest = { _ in }
  }

  check(
    "a source may deliver and finish within the request",
    [.requested(.max(2)), .value("any"), .finished, .value("any")]
  ) { source, _ in
    source.onRequest = { [unowned source] _ in
      source.send(value)
      source.send(completion: .finished)
    }
  }
  check(
    "a request within a value passes at once", [.requested(.max(2)), .value("any"), .requested(.max(3))]
  ) { _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.request(.max(3)) }
  }
  check(
    "cancelling within a value passes at once", [.requested(.max(2)), .value("any"), .cancelled]
  ) { _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
  }
  check("cancelling within the subscription passes", [.cancelled, .value("any")], demand: nil) {
    _, subscriber in
    subscriber.onSubscription = { $0.cancel() }
  }
}

/// The common behaviour of every `try` operator when its closure throws.
///
/// - Parameters:
///   - name: The description of the subscription.
///   - values: The values to send; the closure throws `Oops` with the number of the last one, and for no other.
///   - passed: The output for the values before it.
package func expectThrownErrorEnds<Operator: Publisher>(
  named name: String, sending values: [Int], delivering passed: [Operator.Output] = [],
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  var released = 0
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .unlimited, perValue: .max(1), makeOperator)
    rig.subscriber.onDeinit = { released += 1 }
    rig.source.onDeinit = { released += 1 }
    for value in values.dropLast() { rig.source.send(value) }
    let last = values[values.count - 1]
    #expect(rig.source.send(last) == .none, "no more is asked for", sourceLocation: sourceLocation)
    #expect(
      rig.take() == [.subscription(name), .requested(.unlimited)]
        + passed.map { .value(AnyHashable($0)) } + [.cancelled, .failed(Oops(number: last))],
      "the error cancels upstream and is passed on", sourceLocation: sourceLocation)
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(rig.take() == [], "then all is silent", sourceLocation: sourceLocation)
    rig.source.forget()
  }
  #expect(released == 2, "everything is released", sourceLocation: sourceLocation)
}

/// The common behaviour of every operator that has its result before upstream finishes.
///
/// - Parameters:
///   - name: The description of the subscription.
///   - values: The values to send; the last one settles the result.
///   - result: The result.
package func expectEarlyResult<Operator: Publisher>(
  named name: String, sending values: [Int], delivers result: Operator.Output,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  let start: [Happening] = [.subscription(name), .requested(.unlimited)]
  let end: [Happening] = [.value(AnyHashable(result)), .finished]
  func check(_ title: Comment, _ events: [Happening], _ expected: [Happening]) {
    #expect(events == expected, title, sourceLocation: sourceLocation)
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .max(1), perValue: .max(1), makeOperator)
    for value in values.dropLast() { rig.source.send(value) }
    check("nothing is delivered before it is known", rig.take(), start)
    for value in values.suffix(1) { #expect(rig.source.send(value) == .none) }
    check("upstream is cancelled first", rig.take(), [.cancelled] + end)
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .failure(Oops()))
    rig.subscription.cancel()
    check("then all is silent", rig.take(), [])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: nil, makeOperator)
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .failure(Oops()))
    check("upstream is not kept waiting for demand", rig.take(), start + [.cancelled])
    rig.subscription.request(.max(1))
    rig.subscription.request(.max(1))
    check("the result is", rig.take(), end)
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: nil, makeOperator)
    for value in values { rig.source.send(value) }
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    check("cancelling gives the result up", rig.take(), start + [.cancelled])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .max(1), makeOperator)
    rig.subscriber.onValue = { [unowned rig] _ in
      for value in values { rig.source.send(value) }
      rig.subscription.cancel()
    }
    for value in values { rig.source.send(value) }
    let events = rig.take()
    #expect(events.count { $0 == .value(AnyHashable(result)) } == 1, sourceLocation: sourceLocation)
    #expect(events.count { $0 == .cancelled } == 1, sourceLocation: sourceLocation)
  }
  do {
    var released = 0
    do {
      let rig = Rig<Int, Oops, Operator>(demand: .max(1), makeOperator)
      rig.subscriber.onDeinit = { released += 1 }
      rig.source.onDeinit = { released += 1 }
      for value in values { rig.source.send(value) }
      rig.source.forget()
    }
    #expect(released == 2, "everything is released", sourceLocation: sourceLocation)
  }
}
