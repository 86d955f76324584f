import ReactiveCore
import Testing

/// The common behaviour of every operator that requests everything from upstream and delivers at most one value.
///
/// - Parameters:
///   - name: The description of the subscription.
///   - values: The values to send; they must not settle the result before upstream finishes.
///   - result: The result for them; nil for none.
package func expectReduction<Operator: Publisher>(
  named name: String, of values: [Int], delivers result: Operator.Output?,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  expectEverythingReleased(sending: values, sourceLocation: sourceLocation, makeOperator)

  let start: [Happening] = [.subscription(name), .requested(.unlimited)]
  let end: [Happening] = (result.map { [.value(AnyHashable($0))] } ?? []) + [.finished]
  func check(_ title: Comment, _ events: [Happening], _ expected: [Happening]) {
    #expect(events == expected, title, sourceLocation: sourceLocation)
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .max(1), perValue: .max(3), makeOperator)
    check("everything is asked for", rig.take(), start)
    for value in values { #expect(rig.source.send(value) == .none, sourceLocation: sourceLocation) }
    check("nothing is delivered before the end", rig.take(), [])
    rig.source.send(completion: .finished)
    check("the result is delivered at the end", rig.take(), end)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    check("then all is silent", rig.take(), [])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: nil, makeOperator)
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .finished)
    check("the result waits for demand", rig.take(), start + (result == nil ? [.finished] : []))
    rig.subscription.request(.max(1))
    check("and is delivered then", rig.take(), result == nil ? [] : end)
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: nil, makeOperator)
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .failure(Oops(number: 6)))
    rig.subscription.request(.max(1))
    check("a failure needs no demand", rig.take(), start + [.failed(Oops(number: 6))])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .unlimited, makeOperator)
    rig.source.sendSubscription()
    rig.subscription.cancel()
    rig.subscription.cancel()
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .finished)
    check(
      "a second subscription is cancelled, and cancellation passes", rig.take(),
      start + [.cancelled, .cancelled])
  }

  /// With a source and a subscriber that call back.
  func checkCalls(
    _ title: Comment, _ expected: [Happening], demand: Subscribers.Demand?,
    prepare: (ManualPublisher<Int, Oops>, TrackingSubscriber<Operator.Output, Operator.Failure>) -> Void,
    act: (ManualPublisher<Int, Oops>) -> Void = { _ in }
  ) {
    let source = ManualPublisher<Int, Oops>()
    let subscriber = TrackingSubscriber<Operator.Output, Operator.Failure>(demand, history: source.history)
    prepare(source, subscriber)
    makeOperator(source).subscribe(subscriber)
    act(source)
    check(title, source.history.events, expected)
    subscriber.subscription = nil
    source.onRequest = { _ in }
  }
  func sendEverything(_ source: ManualPublisher<Int, Oops>) {
    for value in values { source.send(value) }
    source.send(completion: .finished)
  }
  for demand in [Subscribers.Demand.max(1), .unlimited] {
    checkCalls("a source may deliver everything within the request", start + end, demand: demand) {
      source, _ in
      source.onRequest = { [unowned source] _ in sendEverything(source) }
    }
  }
  guard result != nil else { return }
  checkCalls("cancelling within the result is too late", start + end, demand: .max(1)) { _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
  } act: {
    sendEverything($0)
  }
  checkCalls("asking for more within the result changes nothing", start + end, demand: .max(1)) {
    _, subscriber in
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.request(.max(1)) }
  } act: {
    sendEverything($0)
  }
}
