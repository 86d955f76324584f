import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ReplaceNilTests {
  @Test func replacesNil() {
    let source = ManualPublisher<Int?, Oops>()
    let rig = Rig(source: source, demand: .max(1), perValue: .max(2)) { $0.replaceNil(with: 0) }
    #expect(source.send(1) == .max(2))
    #expect(source.send(nil) == .max(2))
    source.send(completion: .failure(Oops(number: 3)))
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value(1), .value(0), .failed(Oops(number: 3)),
      ])
    #expect(source.subscriber?.description == "Map")
  }

  @Test func anOptionalOfAnOptionalLosesOneLevel() {
    let publisher = Just<Int??>(nil).eraseToAnyPublisher().replaceNil(with: Int?.none)
    #expect(type(of: publisher) == Publishers.Map<AnyPublisher<Int??, Never>, Int?>.self)
  }

  @Test func cancellationAndFinishPass() {
    let source = ManualPublisher<Int?, Oops>()
    let rig = Rig(source: source, demand: nil) { $0.replaceNil(with: 0) }
    rig.subscription.cancel()
    source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .cancelled, .finished])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.map { $0 as Int? }.replaceNil(with: 0) }
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.map { $0 as Int? }.replaceNil(with: 0) }
  }
}
