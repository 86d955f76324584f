import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MergeManyTests {
  @Test(arguments: [1, 3, 50])
  func passesOnWhatAllDeliver(count: Int) {
    let rig = CombiningRig(of: count) { Publishers.MergeMany($0) }
    #expect(rig.take() == [.subscription("Merge")])
    for index in 0..<count { rig.sources[index].send(index) }
    #expect(rig.take() == (0..<count).map { .value($0) })
    for source in rig.sources { source.send(completion: .finished) }
    #expect(rig.take() == [.finished])
  }

  @Test func finishesAtOnceWithoutPublishers() {
    let rig = CombiningRig(of: 0, demand: nil) { Publishers.MergeMany($0) }
    #expect(rig.take() == [.subscription("Merge"), .finished])
  }

  @Test func asksAsDownstreamDoes() {
    let rig = CombiningRig(of: 2, demand: .max(1)) { Publishers.MergeMany($0) }
    #expect(rig.askedAll() == [[.requested(.max(1))], [.requested(.max(1))]])
    #expect(rig.sources[0].send(1) == .max(1))
    #expect(rig.sources[1].send(2) == .none)
    #expect(rig.take() == [.subscription("Merge"), .value(1)])
  }

  @Test func aFailureCancelsAll() {
    let rig = CombiningRig(of: 2) { Publishers.MergeMany($0) }
    _ = (rig.take(), rig.askedAll())
    rig.sources[0].send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.failed(Oops(number: 1))])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled]])
  }

  @Test func publishersOfOneTypeMergeToMany() {
    let merged = Just(1).merge(with: Just(2)).merge(with: Just(3))
    #expect(merged == Publishers.MergeMany(Just(1), Just(2), Just(3)))
    #expect(merged != Publishers.MergeMany([Just(1), Just(2)]))
    #expect(merged.publishers == [Just(1), Just(2), Just(3)])
    var values: [Int] = []
    _ = merged.sink { values.append($0) }
    #expect(values == [1, 2, 3])
  }

  @Test func releasesEverything() {
    expectCombinationReleased(of: 3) { Publishers.MergeMany($0) }
  }
}
