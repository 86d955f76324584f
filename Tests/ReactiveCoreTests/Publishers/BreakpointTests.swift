import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct BreakpointTests {
  private static let trap: CInt = 5  // SIGTRAP

  @Test func passesEverythingOnAfterAsking() {
    var log: [String] = []
    let rig = Rig(demand: .max(1), perValue: .max(2)) { source in
      source.breakpoint(
        receiveSubscription: { subscription in
          log.append("\(subscription)")
          return false
        },
        receiveOutput: { value in
          log.append("\(value)")
          return false
        },
        receiveCompletion: { completion in
          log.append("\(completion)")
          return false
        })
    }
    rig.subscriber.onValue = { _ in log.append("downstream") }
    #expect(rig.source.send(1) == .max(2))
    rig.subscription.request(.max(3))
    rig.source.send(completion: .finished)
    #expect(log == ["Manual", "1", "downstream", "finished"])
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value(1), .requested(.max(3)), .finished,
      ])
    #expect(rig.source.subscriber?.description == "Breakpoint")
  }

  @Test func cancellationPasses() {
    let rig = Rig(demand: nil) { $0.breakpoint() }
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("Manual"), .cancelled])
  }

  @Test func stopsAtASubscription() async {
    await #expect(processExitsWith: .signal(Self.trap)) {
      Just(1).breakpoint(receiveSubscription: { _ in true }).subscribe(TrackingSubscriber())
    }
  }

  @Test func stopsAtAValue() async {
    await #expect(processExitsWith: .signal(Self.trap)) {
      Just(1).breakpoint(receiveOutput: { $0 == 1 }).subscribe(TrackingSubscriber(.max(1)))
    }
  }

  @Test func stopsAtTheCompletion() async {
    await #expect(processExitsWith: .signal(Self.trap)) {
      Just(1).breakpoint(receiveCompletion: { _ in true }).subscribe(TrackingSubscriber(.max(1)))
    }
  }

  @Test func stopsAtAnError() async {
    await #expect(processExitsWith: .signal(Self.trap)) {
      Fail<Int, Oops>(error: Oops()).breakpointOnError().subscribe(TrackingSubscriber())
    }
  }

  @Test func aFinishIsNoError() {
    let rig = Rig { $0.breakpointOnError() }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .requested(.unlimited), .finished])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.breakpoint() }
  }
}
