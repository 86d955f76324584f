import Testing

@testable import SluiceTool

@Suite("What sub requests")
struct DemandLedgerTests {
  @Test("Rounds: as many as given, and as many again only when all of them are printed")
  func rounds() {
    var ledger = DemandLedger(.rounds(of: 3), limit: nil)
    #expect(ledger.next() == 3)
    #expect(ledger.next() == 0)
    for _ in 0..<3 { ledger.receive() }
    #expect(ledger.isSatisfied)
    ledger.print(Printed(records: 2, bytes: 20))
    #expect(ledger.next() == 0)
    ledger.print(Printed(records: 1, bytes: 10))
    #expect(ledger.allPrinted)
    #expect(ledger.next() == 3)
  }

  @Test(
    "No more is ever requested than is wanted at all",
    arguments: [DemandRule.rounds(of: 3), .window, .unlimited])
  func limited(rule: DemandRule) {
    var ledger = DemandLedger(rule, limit: 7)
    var received = 0
    while !ledger.isComplete {
      let count = ledger.next()
      #expect(count != nil && count! > 0)
      for _ in 0..<(count ?? 7) {
        ledger.receive()
        received += 1
        ledger.print(Printed(records: 1, bytes: 1))
      }
    }
    #expect(received == 7)
    #expect(ledger.next() == 0)
  }

  @Test("Without limits everything is requested at once, and nothing is ever satisfied")
  func unlimited() {
    var ledger = DemandLedger(.unlimited, limit: nil)
    #expect(ledger.next() == nil)
    ledger.receive()
    #expect(!ledger.isSatisfied)
  }

  @Test("A window grows with small records and shrinks with large ones, down to one")
  func window() {
    func open(afterRecordsOf bytes: Int) -> UInt64 {
      var ledger = DemandLedger(.window, limit: nil)
      let first = ledger.next() ?? 0
      for _ in 0..<first { ledger.receive() }
      ledger.print(Printed(records: first, bytes: first * bytes))
      return UInt64(ledger.next() ?? 0)
    }
    #expect(open(afterRecordsOf: 8) == 65_536)
    #expect(open(afterRecordsOf: 64 << 10) == 128)
    #expect(open(afterRecordsOf: 1 << 20) == 8)
    #expect(open(afterRecordsOf: 100 << 20) == 1)
  }

  @Test("A window is refilled when half of it is printed, not with every record")
  func refill() {
    var ledger = DemandLedger(.window, limit: nil)
    let first = ledger.next() ?? 0
    for _ in 0..<first { ledger.receive() }
    // Large records, so that the window doesn't change.
    let bytes = (8 << 20) / first
    ledger.print(Printed(records: 1, bytes: bytes))
    #expect(ledger.next() == 0)
    ledger.print(Printed(records: first / 2 - 1, bytes: bytes * (first / 2 - 1)))
    #expect(ledger.next() == first / 2)
  }
}
