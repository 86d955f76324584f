import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct SetFailureTypeTests {
  @Test func passesEverythingOn() {
    let source = ManualPublisher<Int, Never>()
    let rig = Rig(source: source, demand: .max(1), perValue: .max(2)) { $0.setFailureType(to: Oops.self) }
    #expect(source.send(1) == .max(2))
    source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(1)), .value(1), .finished])
    #expect(source.subscriber?.description == "SetFailureType")
    let once = Deferred { Just(1) }.setFailureType(to: CancellationError.self)
    let twice = once.setFailureType(to: Oops.self)
    #expect(type(of: twice) == Publishers.SetFailureType<Deferred<Just<Int>>, Oops>.self)
  }

  @Test func cancellationReachesTheSource() {
    let rig = Rig(source: ManualPublisher<Int, Never>(), demand: nil) { $0.setFailureType(to: Oops.self) }
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("Manual"), .cancelled])
  }

  @Test func releasesEverything() {
    var released = 0
    for end in [End.finish, .cancel] {
      let source = ManualPublisher<Int, Never>()
      let rig = Rig(source: source) { $0.setFailureType(to: Oops.self) }
      rig.subscriber.onDeinit = { released += 1 }
      if end == .finish { source.send(completion: .finished) } else { rig.subscription.cancel() }
      source.forget()
    }
    #expect(released == 2)
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.assertNoFailure().setFailureType(to: Oops.self) }
  }
}
