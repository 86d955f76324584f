import Glibc
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Broker state created by peers is charged: at least nine tenths of the heap's growth, for every type of frame. Each comparison runs in its own
/// process, so that nothing else uses the heap.
@Suite(.serialized) struct LedgerOracleTests {
  /// Every type of frame that a broker accepts on any stream.
  static let taken: [FrameType] = (UInt8.min...UInt8.max).map(FrameType.init(rawValue:)).filter { type in
    [UInt32(0), 1].contains { stream in
      (try? FrameHeader(length: 0, type: type, stream: stream).admission(at: .broker)) == .take
    }
  }

  /// Bytes that the heap may grow by without a charge, for the allocator and the test itself.
  static let slack = 768 << 10

  @Test func everyFrameThatABrokerTakesHasAStory() {
    #expect(Set(LedgerStory.table.keys) == Set(Self.taken))
  }

  @Test func everyFrameIsChargedForWhatItMakesTheBrokerKeep() async {
    await #expect(processExitsWith: .success) {
      let perConnection = try Ledger.bytesPerConnection()
      for type in LedgerOracleTests.taken {
        for (index, story) in (LedgerStory.table[type] ?? []).enumerated() {
          let ledger = try Ledger(named: "\(type) \(index)", perConnection: perConnection)
          for number in 0..<story.count { story.step(ledger.rig, number, 1) }
          ledger.compare(isOver: false)
          ledger.rig.close()
          ledger.compare(isOver: true)
        }
      }
    }
  }

  @Test func framesOfAllTypesAndSizesAreChargedTogether() async {
    await #expect(processExitsWith: .success) {
      let perConnection = try Ledger.bytesPerConnection()
      // This process has its own base unless one is given; failures name it.
      for seed in Seeds.base..<Seeds.base + 3 {
        var random = TestSupport.SeededRandom(seed: seed)
        let ledger = try Ledger(
          named: "SLUICE_SEED_BASE=\(Seeds.base) seed \(seed)", perConnection: perConnection)
        for number in 0..<4_000 {
          let type = LedgerOracleTests.taken.randomElement(using: &random)!
          // Each HELLO closes a connection or waits for its reply, which takes long.
          guard type != .hello || number % 10 == 0 else { continue }
          let story = LedgerStory.table[type]!.randomElement(using: &random)!
          story.step(ledger.rig, number, Double.random(in: 0...1, using: &random))
        }
        ledger.compare(isOver: false)
        ledger.rig.close()
        ledger.compare(isOver: true)
      }
    }
  }
}

/// A comparison of charges with heap growth, starting at its creation.
struct Ledger {
  let rig: LedgerRig
  private let name: String
  private let before: (heap: Int, charged: Int, connections: Int)
  private let perConnection: Int

  init(named name: String, perConnection: Int) throws {
    self.name = name
    self.perConnection = perConnection
    rig = try LedgerRig()
    rig.settle()
    before = (LedgerRig.heap, rig.charged, rig.connections)
  }

  /// The heap bytes of a simulated connection that the broker doesn't charge.
  static func bytesPerConnection() throws -> Int {
    let rig = try LedgerRig()
    rig.settle()
    let (heap, charged) = (LedgerRig.heap, rig.charged)
    for _ in 0..<200 { rig.reconnect() }
    rig.settle()
    return max(0, LedgerRig.heap - heap - (rig.charged - charged)) / 200
  }

  /// - Parameter isOver: whether all connections are closed.
  func compare(isOver: Bool) {
    rig.settle()
    let connections = isOver ? 0 : rig.connections - before.connections
    let grown = LedgerRig.heap - before.heap - connections * perConnection
    let charged = rig.charged - before.charged
    note("\(name)\(isOver ? ", closed" : ""): charged \(charged >> 10) KiB, grown by \(grown >> 10) KiB")
    #expect(
      charged * 10 >= (grown - LedgerOracleTests.slack) * 9,
      "\(name)\(isOver ? ", closed" : ""): charged \(charged), grown by \(grown)")
  }

  /// Appends a line to the file that `SLUICE_LEDGER` names, if set. Output of the separate process isn't shown.
  private func note(_ line: String) {
    guard let path = getenv("SLUICE_LEDGER"), let file = fopen(path, "a") else { return }
    fputs(line + "\n", file)
    fclose(file)
  }
}
