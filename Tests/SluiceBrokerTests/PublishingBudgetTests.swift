import SluiceSession
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Sharing of the available grant among producers.
struct PublishingBudgetTests {
  typealias Allowance = PublishingBudget.Allowance

  private let window = Allowance(records: 100, bytes: .max)

  @Test func oneProducerGetsAll() {
    var budget = PublishingBudget(publications: 1)
    let more = budget.grant(
      to: Allowance(), limit: .ahead(records: 7, bytes: 50), window: window)
    #expect(more == Allowance(records: 7, bytes: 50))
  }

  @Test func nothingIsNothing() {
    var budget = PublishingBudget(publications: 1)
    #expect(budget.grant(to: Allowance(), limit: FlowLimit.none, window: window) == Allowance())
  }

  @Test func theWindowBoundsWhatOneGets() {
    var budget = PublishingBudget(publications: 1)
    let more = budget.grant(
      to: Allowance(), limit: .ahead(records: .max, bytes: 50), window: window)
    #expect(more.records == 100)
  }

  @Test func moreComesWhenHalfOfAShareIsUsedUp() {
    var budget = PublishingBudget(publications: 1)
    func more(_ held: UInt64) -> UInt64 {
      budget.grant(
        to: Allowance(records: held, bytes: 10), limit: .ahead(records: 10, bytes: 10),
        window: window
      ).records
    }
    #expect(more(0) == 10)
    budget.spend(Allowance(records: 4))
    #expect(more(6) == 0)
    budget.spend(Allowance(records: 1))
    #expect(more(5) == 5)
  }

  @Test func whoRestsDoesntKeepTheOthersWaiting() {
    var budget = PublishingBudget(publications: 2)
    let limit = FlowLimit.ahead(records: 1, bytes: 1)
    #expect(
      budget.grant(to: Allowance(), limit: limit, window: window)
        == Allowance(records: 1, bytes: 1))
    // The other publication has the only record, and may never use it.
    #expect(
      budget.grant(to: Allowance(), limit: limit, window: window)
        == Allowance(records: 1, bytes: 1))
    #expect(
      budget.grant(to: Allowance(records: 1, bytes: 1), limit: limit, window: window)
        == Allowance())
  }

  /// Producers attach, detach, publish and rest at random. Together they never have more than the limit plus one record each, and a producer without
  /// a grant gets one while there is a limit to share.
  @Test(arguments: 0..<50)
  func sharesAreBoundedAndNobodyStarves(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var budget = PublishingBudget()
    var held: [Allowance] = []
    var room: UInt64 = 20
    for _ in 0..<400 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0 where held.count < 6:
        held.append(Allowance())
        budget.open()
      case 1 where !held.isEmpty:
        budget.close(returning: held.remove(at: .random(in: held.indices, using: &random)))
      case 2 where !held.isEmpty:
        // Publish; the published records use room until a reader has read them.
        let index = Int.random(in: held.indices, using: &random)
        let used = Allowance(records: min(held[index].records, 3), bytes: min(held[index].bytes, 3))
        held[index].subtract(used)
        budget.spend(used)
        room -= min(room, used.records)
      default: room = min(room + 5, 20)
      }
      let limit: FlowLimit = room == 0 ? .none : .ahead(records: room, bytes: room)
      for index in held.indices {
        held[index].add(
          budget.grant(to: held[index], limit: limit, window: window))
        if room > 0 { #expect(held[index].records > 0 && held[index].bytes > 0) }
      }
      #expect(held.map(\.records).reduce(0, +) <= 20 + 6)
    }
  }
}
