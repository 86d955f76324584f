import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker

/// How what may be granted is shared among producers.
struct GrantLedgerTests {
  typealias Allowance = GrantLedger.Allowance

  private let window = Allowance(records: 100, bytes: .max)

  @Test func oneProducerGetsAll() {
    var ledger = GrantLedger()
    let more = ledger.grant(
      to: Allowance(), limit: .ahead(records: 7, bytes: 50), producers: 1, window: window)
    #expect(more == Allowance(records: 7, bytes: 50))
  }

  @Test func nothingIsNothing() {
    var ledger = GrantLedger()
    #expect(ledger.grant(to: Allowance(), limit: .none, producers: 1, window: window) == Allowance())
  }

  @Test func theWindowBoundsWhatOneGets() {
    var ledger = GrantLedger()
    let more = ledger.grant(
      to: Allowance(), limit: .ahead(records: .max, bytes: 50), producers: 1, window: window)
    #expect(more.records == 100)
  }

  @Test func moreComesWhenHalfOfAShareIsUsedUp() {
    var ledger = GrantLedger()
    func more(_ held: UInt64) -> UInt64 {
      ledger.grant(
        to: Allowance(records: held, bytes: 10), limit: .ahead(records: 10, bytes: 10), producers: 1,
        window: window
      ).records
    }
    #expect(more(0) == 10)
    ledger.returned(Allowance(records: 4))
    #expect(more(6) == 0)
    ledger.returned(Allowance(records: 1))
    #expect(more(5) == 5)
  }

  @Test func whoRestsDoesntKeepTheOthersWaiting() {
    var ledger = GrantLedger()
    let limit = FlowLimit.ahead(records: 1, bytes: 1)
    #expect(
      ledger.grant(to: Allowance(), limit: limit, producers: 2, window: window)
        == Allowance(records: 1, bytes: 1))
    // The only record is with the other one, who may never use it.
    #expect(
      ledger.grant(to: Allowance(), limit: limit, producers: 2, window: window)
        == Allowance(records: 1, bytes: 1))
    #expect(
      ledger.grant(to: Allowance(records: 1, bytes: 1), limit: limit, producers: 2, window: window)
        == Allowance())
  }

  /// Producers that come, go, publish and rest at random: together they never hold more than the limit and one record each, and whoever
  /// has nothing gets something while there is a limit to share.
  @Test(arguments: 0..<50)
  func sharesAreBoundedAndNobodyStarves(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var ledger = GrantLedger()
    var held: [Allowance] = []
    var room: UInt64 = 20
    for _ in 0..<400 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0 where held.count < 6: held.append(Allowance())
      case 1 where !held.isEmpty:
        ledger.returned(held.remove(at: .random(in: held.indices, using: &random)))
      case 2 where !held.isEmpty:
        // Publishes, and what is published takes up room until a reader has taken it.
        let index = Int.random(in: held.indices, using: &random)
        let used = Allowance(records: min(held[index].records, 3), bytes: min(held[index].bytes, 3))
        held[index].subtract(used)
        ledger.returned(used)
        room -= min(room, used.records)
      default: room = min(room + 5, 20)
      }
      let limit: FlowLimit = room == 0 ? .none : .ahead(records: room, bytes: room)
      for index in held.indices {
        held[index].add(
          ledger.grant(to: held[index], limit: limit, producers: held.count, window: window))
        if room > 0 { #expect(held[index].records > 0 && held[index].bytes > 0) }
      }
      #expect(held.map(\.records).reduce(0, +) <= 20 + 6)
    }
  }
}
