import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker

/// Lending one demand to several nodes.
@Suite struct PatternLoansTests {
  private var loans = PatternLoans()
  private var credit = Credit()

  private mutating func settle() -> [PatternLoans.Action] { loans.settle(credit) }

  private mutating func expectLoans(_ expected: [PatternLoans.Action]) {
    let loans = settle()
    #expect(loans == expected)
  }

  private mutating func spend(_ count: UInt64) {
    let isSpent = credit.spend(count)
    #expect(isSpent)
  }

  private func lend(_ part: Int, _ through: UInt64, paced: UInt64, recalls: Bool = false)
    -> PatternLoans.Action
  {
    PatternLoans.Action(
      part: part, frame: Lend(grantedThrough: through, pacedThrough: paced, recalls: recalls))
  }

  private mutating func offer(_ part: Int, returned: UInt64 = 0, waits: Bool = true, isPaced: Bool = false)
    throws
  {
    try loans.offered(Offer(returned: returned, waits: waits, isPaced: isPaced), by: part)
  }

  @Test mutating func nothingIsLentBeforeRecordsWait() throws {
    loans.begin(1)
    loans.begin(2)
    _ = credit.raise(to: 10)
    expectLoans([])
    try offer(2)
    expectLoans([lend(2, 10, paced: 10)])
    #expect(loans.reserved == 10)
    // The same loan isn't repeated.
    expectLoans([])
  }

  @Test mutating func thoseThatWaitGetEqualShares() throws {
    for part in 1...3 { loans.begin(part) }
    for part in 1...3 { try offer(part) }
    _ = credit.raise(to: 8)
    expectLoans([lend(1, 2, paced: 8), lend(2, 3, paced: 8), lend(3, 3, paced: 8)])
  }

  @Test mutating func theOneThatHasWaitedLongestIsFirst() throws {
    loans.begin(1)
    loans.begin(2)
    loans.ownTurnEnded(isUsed: false, waits: true)
    try offer(2)
    try offer(1)
    _ = credit.raise(to: 1)
    // The rest is for the subscriber's own node.
    expectLoans([])
    #expect(loans.reserved == 0)
    spend(1)
    loans.ownTurnEnded(isUsed: true, waits: true)
    _ = credit.raise(to: 2)
    expectLoans([lend(2, 1, paced: 1)])
  }

  @Test mutating func whatIsNotUsedIsRecalledForAnother() throws {
    loans.begin(1)
    loans.begin(2)
    try offer(1)
    _ = credit.raise(to: 10)
    _ = settle()
    try loans.received(3, bytes: 30, from: 1, isWanted: true)
    loans.written(3, from: 1)
    spend(3)
    expectLoans([])
    try offer(2)
    expectLoans([lend(1, 10, paced: 10, recalls: true)])
    expectLoans([])
    // Two more records were in transit.
    try loans.received(2, bytes: 20, from: 1, isWanted: true)
    try offer(1, returned: 5, waits: false)
    #expect(loans.reserved == 2)
    expectLoans([lend(2, 5, paced: 5)])
    #expect(loans.reserved == 7)
  }

  @Test mutating func aStreamThatEndsGivesItsLoanBack() throws {
    loans.begin(1)
    loans.begin(2)
    try offer(1)
    _ = credit.raise(to: 4)
    _ = settle()
    try loans.received(1, bytes: 10, from: 1, isWanted: true)
    loans.end(1)
    #expect(loans.reserved == 1)
    try offer(2)
    expectLoans([lend(2, 3, paced: 3)])
    // Its record is still to be written.
    loans.written(1, from: 1)
    #expect(loans.reserved == 3)
  }

  @Test mutating func recordsThatAreDroppedCanBeAskedForElsewhere() throws {
    loans.begin(1)
    try offer(1)
    _ = credit.raise(to: 4)
    _ = settle()
    try loans.received(4, bytes: 40, from: 1, isWanted: false)
    #expect(loans.reserved == 0)
    try offer(1)
    expectLoans([lend(1, 8, paced: 8)])
  }

  @Test mutating func unlimitedDemandIsForAll() throws {
    loans.begin(1)
    loans.begin(2)
    _ = credit.raise(to: Credit.unlimited)
    let first = DemandWindow.first
    expectLoans([lend(1, first, paced: .max), lend(2, first, paced: .max)])
    try loans.received(first, bytes: 1600, from: 1, isWanted: true)
    // Only after they are written.
    expectLoans([lend(1, 2 * first, paced: .max)])
    loans.written(first, from: 1)
    expectLoans([lend(1, 3 * first, paced: .max)])
  }

  @Test mutating func producersFollowTheWholeDemand() throws {
    loans.begin(1)
    try offer(1, waits: false, isPaced: true)
    expectLoans([])
    _ = credit.raise(to: 6)
    expectLoans([lend(1, 0, paced: 6)])
    // Topics of the subscriber's own node have used it up.
    spend(6)
    loans.ownTurnEnded(isUsed: true, waits: false)
    expectLoans([lend(1, 0, paced: 0)])
  }

  @Test mutating func moreThanWasLentIsRefused() throws {
    loans.begin(1)
    try offer(1)
    _ = credit.raise(to: 2)
    _ = settle()
    #expect(throws: WireError.self) { try loans.received(3, bytes: 1, from: 1, isWanted: true) }
    #expect(throws: WireError.self) { try offer(1, returned: 3) }
    #expect(throws: WireError.self) { try loans.received(1, bytes: 1, from: 7, isWanted: true) }
  }

  /// Nodes that use, keep and return loans at random.
  @Test(arguments: UInt64(1)...200)
  mutating func neverMoreThanWasAskedForAndNoneIsForgotten(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    struct Node {
      var backlog: UInt64 = 0
      var lent: UInt64 = 0
      var used: UInt64 = 0
      var returned: UInt64 = 0
      var unwritten: UInt64 = 0
      var hasOffered = false
    }
    var nodes = [Node](repeating: Node(), count: 4)
    var ownBacklog: UInt64 = 0
    for part in 1...3 { loans.begin(part) }
    func total() -> UInt64 { nodes.reduce(0) { $0 + $1.lent - $1.used + $1.unwritten } }
    var delivered: UInt64 = 0
    func tell(_ actions: [PatternLoans.Action]) throws {
      for action in actions {
        let part = action.part
        if action.frame.grantedThrough > nodes[part].lent { nodes[part].hasOffered = false }
        nodes[part].lent = action.frame.grantedThrough
        guard action.frame.recalls else { continue }
        // It first sends the waiting records.
        let count = min(nodes[part].backlog, nodes[part].lent - nodes[part].used)
        try loans.received(count, bytes: Int(count) * 10, from: part, isWanted: true)
        nodes[part].used += count
        nodes[part].backlog -= count
        nodes[part].unwritten += count
        nodes[part].returned += nodes[part].lent - nodes[part].used
        nodes[part].used = nodes[part].lent
        nodes[part].hasOffered = nodes[part].backlog > 0
        try offer(part, returned: nodes[part].returned, waits: nodes[part].hasOffered)
      }
    }
    func turn(_ part: Int) throws {
      let count = min(nodes[part].backlog, nodes[part].lent - nodes[part].used)
      if count > 0 {
        try loans.received(count, bytes: Int(count) * 10, from: part, isWanted: true)
        nodes[part].used += count
        nodes[part].backlog -= count
        nodes[part].unwritten += count
      }
      if nodes[part].backlog > 0, !nodes[part].hasOffered {
        nodes[part].hasOffered = true
        try offer(part, returned: nodes[part].returned)
      }
    }
    func write(_ part: Int) {
      let count = nodes[part].unwritten
      nodes[part].unwritten = 0
      loans.written(count, from: part)
      spend(count)
      delivered += count
    }
    func ownTurn() {
      let count = min(ownBacklog, credit.available - min(loans.reserved, credit.available))
      spend(count)
      ownBacklog -= count
      delivered += count
      loans.ownTurnEnded(isUsed: count > 0, waits: ownBacklog > 0)
    }
    var asked: UInt64 = 0
    for _ in 0..<60 {
      let part = Int.random(in: 1...3, using: &random)
      switch Int.random(in: 0...4, using: &random) {
      case 0: nodes[part].backlog += UInt64(Int.random(in: 1...9, using: &random))
      case 1: ownBacklog += UInt64(Int.random(in: 1...9, using: &random))
      case 2:
        asked += UInt64(Int.random(in: 1...20, using: &random))
        _ = credit.raise(to: asked)
      case 3: write(part)
      default: ownTurn()
      }
      try turn(part)
      try tell(settle())
      #expect(loans.reserved == total())
      #expect(total() + delivered <= asked)
    }
    // As many records arrive as were requested and are available.
    let there = nodes.reduce(ownBacklog) { $0 + $1.backlog + $1.unwritten }
    for _ in 0..<200 {
      for part in 1...3 {
        try turn(part)
        write(part)
      }
      ownTurn()
      try tell(settle())
    }
    let missing = nodes.reduce(ownBacklog) { $0 + $1.backlog + $1.unwritten }
    #expect(missing == 0 || delivered == asked, "\(missing) of \(there) wait; \(delivered) of \(asked)")
  }
}
