import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MapKeyPathTests {
  @Test func passesAPropertyOn() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.map(\.bitWidth) }
    #expect(rig.source.send(1) == .max(2))
    rig.subscription.request(.max(3))
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value(64), .requested(.max(3)),
        .failed(Oops(number: 1)),
      ])
    #expect(rig.source.subscriber?.description == "ValueForKey")
  }

  @Test func passesTwoPropertiesOn() {
    let source = ManualPublisher<String, Never>()
    var values: [String] = []
    let mapped = source.map(\.count, \.isEmpty)
    let subscription = mapped.sink { values.append("\($0)") }
    source.send("four")
    source.send(completion: .finished)
    #expect(values == ["(4, false)"])
    #expect(source.subscriber?.description == "ValuesForKey")
    #expect(mapped.keyPath1 == \String.isEmpty)
    subscription.cancel()
  }

  @Test func passesThreePropertiesOn() {
    let source = ManualPublisher<String, Never>()
    var values: [String] = []
    let subscription = source.map(\.count, \.isEmpty, \.utf8.count).sink { values.append("\($0)") }
    source.send("für")
    #expect(values == ["(3, false, 4)"])
    #expect(source.subscriber?.description == "ValuesForKey")
    subscription.cancel()
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.map(\.bitWidth) }
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.map(\.bitWidth) }
    expectTransparentStreamWithstandsReentrancy {
      $0.map(\.bitWidth, \.bigEndian).map { [$0, $1] }
    }
    expectTransparentStreamWithstandsReentrancy {
      $0.map(\.bitWidth, \.bigEndian, \.littleEndian).map { [$0, $1, $2] }
    }
  }
}
