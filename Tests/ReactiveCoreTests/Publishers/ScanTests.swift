import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ScanTests {
  @Test func passesOnTheRunningResult() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.scan("") { "\($0)\($1)" } }
    for value in 1...3 { #expect(rig.source.send(value) == .max(2)) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(
      rig.take() == [
        .subscription("Manual"), .requested(.max(1)), .value("1"), .value("12"), .value("123"),
        .failed(Oops(number: 1)),
      ])
  }

  @Test func leavesTheSubscriptionAsItIs() {
    let rig = Rig(demand: nil) { $0.scan(0, +) }
    #expect(rig.source.subscriber?.description == "Scan")
    let labels = rig.source.subscriber?.customMirror.children.map(\.label)
    #expect(labels == ["downstream", "result"])
    rig.subscription.request(.max(3))
    rig.subscription.cancel()
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(3)), .cancelled, .finished])
  }

  @Test func startsAnewForEachSubscriber() {
    let publisher = [1, 2].publisher.eraseToAnyPublisher().scan(10, +)
    var results: [Int] = []
    for _ in 0..<2 { _ = publisher.sink { results.append($0) } }
    #expect(results == [11, 13, 11, 13])
  }

  @Test func cancellingFromWithinAValueReachesTheSource() {
    let rig = Rig { $0.scan(0, +) }
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    rig.source.send(1)
    #expect(rig.take() == [.subscription("Manual"), .requested(.unlimited), .value(1), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.scan(0, +) }
  }
}
