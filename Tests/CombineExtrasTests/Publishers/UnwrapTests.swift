import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Testing

@Suite struct UnwrapTests {
  @Test func theExampleDoesWhatItSays() {
    var printed: [Int] = []
    _ = [1, nil, 3].publisher.unwrap().sink { printed.append($0) }
    #expect(printed == [1, 3])
  }

  @Test func asksForAnotherInPlaceOfNil() {
    let source = ManualPublisher<Int?, Oops>()
    let rig = Rig(source: source, demand: .max(2)) { $0.unwrap() }
    #expect(source.send(nil) == .max(1))
    #expect(source.send(1) == .none)
    #expect(source.send(nil) == .max(1))
    source.send(completion: .failure(Oops(number: 2)))
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(2)), .value(1), .failed(Oops(number: 2)),
      ])
  }

  @Test func takesOffOneLayer() {
    var received: [Int?] = []
    _ = [Int??.some(nil), nil, 1].publisher.unwrap().sink { received.append($0) }
    #expect(received == [nil, 1])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.map { Optional($0) }.unwrap() }
  }

  @Test func withstandsReentrancy() {
    expectTransparentStreamWithstandsReentrancy { $0.map { Optional($0) }.unwrap() }
  }
}
