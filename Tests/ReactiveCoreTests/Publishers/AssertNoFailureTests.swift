import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AssertNoFailureTests {
  @Test func passesEverythingOnThatIsNoFailure() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.assertNoFailure() }
    #expect(rig.source.send(1) == .max(2))
    rig.subscription.request(.max(3))
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value(1), .requested(.max(3)), .finished,
      ])
    #expect(rig.source.subscriber?.description == "AssertNoFailure")
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["file", "line", "prefix"])
  }

  @Test func cancellationPasses() {
    let rig = Rig(demand: nil) { $0.assertNoFailure() }
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("Manual"), .cancelled])
  }

  @Test func stopsTheProgramOnAFailureAndSaysWhere() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let publisher = Fail<Int, Oops>(error: Oops(number: 3))
        .assertNoFailure("here", file: "Some/File.swift", line: 17)
      publisher.subscribe(TrackingSubscriber())
    }
    let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("File.swift:17: Fatal error: here: Oops(number: 3)"))
  }

  @Test func withoutAPrefixThereIsNoColon() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Fail<Int, Oops>(error: Oops()).assertNoFailure().subscribe(TrackingSubscriber())
    }
    let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("Fatal error: Oops(number: 0)"))
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.assertNoFailure() }
  }
}
