import ReactiveCore
import Testing

/// The common behaviour of every operator that passes requests on and holds a subscription.
///
/// - Parameters:
///   - name: The description of the subscription.
///   - values: Values sent that must pass.
package func expectOrderlyStream<Operator: Publisher>(
  named name: String, sending values: [Int] = [1], sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  expectEverythingReleased(sending: values, sourceLocation: sourceLocation, makeOperator)

  func check(_ title: Comment, _ events: [Happening], _ expected: [Happening]) {
    #expect(events == expected, title, sourceLocation: sourceLocation)
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .max(5), makeOperator)
    check("the request passes", rig.take(), [.subscription(name), .requested(.max(5))])
    rig.subscription.request(.max(2))
    check("a second request passes", rig.take(), [.requested(.max(2))])
    rig.source.sendSubscription()
    check("a second subscription is cancelled", rig.take(), [.cancelled])
    rig.source.send(completion: .failure(Oops(number: 4)))
    check("the failure passes", rig.take(), [.failed(Oops(number: 4))])
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    check("after the failure all is silent", rig.take(), [])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: .unlimited, makeOperator)
    _ = rig.take()
    rig.subscription.cancel()
    check("cancellation passes", rig.take(), [.cancelled])
    for value in values { rig.source.send(value) }
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    check("after cancellation all is silent", rig.take(), [])
  }
  do {
    let rig = Rig<Int, Oops, Operator>(demand: nil, makeOperator)
    rig.source.send(completion: .finished)
    check("a finish passes without demand", rig.take(), [.subscription(name), .finished])
  }
}
