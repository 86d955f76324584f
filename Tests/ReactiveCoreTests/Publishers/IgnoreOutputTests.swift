import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct IgnoreOutputTests {
  @Test func passesOnlyTheCompletion() {
    let rig = Rig(demand: .max(1)) { $0.ignoreOutput() }
    for value in 1...2 { #expect(rig.source.send(value) == .none) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .requested(.unlimited), .failed(Oops(number: 1)),
      ])
  }

  @Test func asksForEverythingWithoutDemand() {
    let rig = Rig(demand: nil) { $0.ignoreOutput() }
    #expect(rig.take() == [.subscription("Manual"), .requested(.unlimited)])
    rig.subscription.cancel()
    #expect(rig.take() == [.cancelled])
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
  }

  @Test func aSourceMayFinishWithinTheRequest() {
    var isFinished = false
    let subscription = [1, 2].publisher.eraseToAnyPublisher().ignoreOutput().sink(
      receiveCompletion: { _ in isFinished = true }, receiveValue: { _ in })
    #expect(isFinished)
    subscription.cancel()
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.ignoreOutput() }
  }

  @Test func isEqualIfUpstreamIs() {
    #expect(Publishers.IgnoreOutput(upstream: Just(1)) == Publishers.IgnoreOutput(upstream: Just(1)))
  }
}
