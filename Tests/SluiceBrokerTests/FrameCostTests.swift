import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The costs of frames compared with the frame table, and their sum in the work budget.
struct FrameCostTests {
  /// Every type of frame that a broker accepts on any stream.
  private static let taken: [FrameType] = (UInt8.min...UInt8.max).map(FrameType.init(rawValue:)).filter {
    type in
    [UInt32(0), 1].contains { stream in
      (try? FrameHeader(length: 0, type: type, stream: stream).admission(at: .broker)) == .take
    }
  }

  @Test func everyFrameThatABrokerTakesHasACost() {
    #expect(Set(FrameCost.table.keys) == Set(Self.taken))
    for type in Self.taken { #expect(FrameCost.steps(for: type) == FrameCost.table[type]?.steps, "\(type)") }
  }

  @Test func aFrameThatCostsNothingByItselfIsBoundedByBytesOrByWhatIsFound() {
    // A heartbeat, or a few integers for the connection's own table; all of them count as frames.
    // ORIGIN names a node's client, and is ignored from other peers.
    let small: Set<FrameType> = [.ping, .pong, .error, .commit, .origin]
    // Limited by the bytes of their records or positions.
    let long: Set<FrameType> = [.publish, .positions]
    for (type, cost) in FrameCost.table where cost.steps == 0 && cost.found.isEmpty {
      #expect(small.contains(type) || long.contains(type), "\(type) is free")
    }
  }

  @Test func everyKindOfWorkIsSomeFrames() {
    let found = FrameCost.table.values.reduce(into: Set<FrameCost.Work>()) { $0.formUnion($1.found) }
    #expect(found == Set(FrameCost.Work.allCases))
  }

  @Test(arguments: FrameCost.Work.allCases)
  func workAddsUpUntilTheEffortIsExhausted(work: FrameCost.Work) {
    var workBudget = WorkBudget()
    #expect(workBudget.left(work) == WorkBudget.limit * work.perStep)
    for _ in 0..<WorkBudget.limit * work.perStep - 1 { workBudget.spend(1, of: work) }
    #expect(!workBudget.isExhausted)
    #expect(workBudget.left(work) == 1)
    workBudget.spend(1, of: work)
    #expect(workBudget.isExhausted && workBudget.left(work) == 0 && workBudget.spent == WorkBudget.limit)
    workBudget.spend(.max, of: work)
    workBudget.spend(.max)
    #expect(workBudget.isExhausted)
    workBudget.renew()
    #expect(workBudget.spent == 0 && !workBudget.isExhausted)
  }

  @Test func soManyFramesExhaustATurnWhateverTheyCost() {
    var workBudget = WorkBudget()
    for _ in 0..<WorkBudget.frameLimit { workBudget.tookFrame() }
    #expect(workBudget.isExhausted && workBudget.left(.names) == 0)
  }
}
