import SluiceTopics
import SluiceWire
import Testing

@testable import SluiceBroker

/// The demand of another node's client that is lent to this node, and this node's reports.
@Suite struct NodeLoanTests {
  private let loan = NodeLoan(shards: ServedShards())
  private var credit = Credit()

  private mutating func lend(_ through: UInt64, paced: UInt64 = 0, recalls: Bool = false) {
    loan.take(Lend(grantedThrough: through, pacedThrough: paced, recalls: recalls), raising: &credit)
  }

  @Test mutating func whatWaitsIsOfferedOnceUntilMoreIsLent() {
    #expect(loan.exhausted() == Offer(returned: 0, waits: true, isPaced: false))
    #expect(loan.exhausted() == nil)
    // No change: the same grant is repeated, as after a resumed connection.
    lend(0)
    #expect(loan.exhausted() == nil)
    lend(5)
    #expect(credit.available == 5)
    #expect(loan.exhausted() == Offer(returned: 0, waits: true, isPaced: false))
  }

  @Test mutating func whatIsLeftIsGivenBackOnce() {
    lend(10, recalls: true)
    #expect(loan.isRecalled)
    let isSpent = credit.spend(4)
    #expect(isSpent)
    var offer = loan.giveBack(&credit, waits: false)
    #expect(offer == Offer(returned: 6, waits: false, isPaced: false))
    #expect(credit.available == 0)
    #expect(!loan.isRecalled)
    offer = loan.giveBack(&credit, waits: true)
    #expect(offer == Offer(returned: 6, waits: true, isPaced: false))
    // The other node knows that records wait.
    #expect(loan.exhausted() == nil)
    // Returned demand is part of later loans.
    lend(12)
    #expect(credit.available == 2)
    offer = loan.giveBack(&credit, waits: false)
    #expect(offer == Offer(returned: 8, waits: false, isPaced: false))
  }

  @Test mutating func demandWithoutLimitIsKept() {
    lend(Credit.unlimited)
    let offer = loan.giveBack(&credit, waits: true)
    #expect(offer == Offer(returned: 0, waits: true, isPaced: false))
    #expect(credit.available == Credit.unlimited)
  }

  @Test mutating func producersFollowTheDemandOfTheClientAsAWhole() {
    lend(3, paced: 20)
    #expect(loan.paced() == Offer(returned: 0, waits: false, isPaced: true))
    #expect(loan.paced() == nil)
    #expect(loan.pacingDemand(spent: 5).available == 15)
    #expect(loan.exhausted() == Offer(returned: 0, waits: true, isPaced: true))
  }

  @Test func topicsThatAreGoneAreToldAsFarAsThereIsRoom() {
    let nowhere = Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0)
    var wanted = 0
    for number in 0..<UInt32(2_000) {
      loan.isAbsent("t\(number)", as: number)
      wanted += Matched(number: number, topic: "t\(number)", place: nowhere).encoded(stream: 1).count
    }
    var told: [Int] = []
    var isDone = false
    while !isDone {
      let writes = WriteBatch()
      isDone = loan.tellAbsent(writes, stream: 1)
      told.append(writes.bytes)
    }
    #expect(told.count > 1)
    #expect(told.reduce(0, +) == wanted)
    let nothing = WriteBatch()
    #expect(loan.tellAbsent(nothing, stream: 1) && nothing.isEmpty)
  }
}
