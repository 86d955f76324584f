import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct FairTurnsTests {
  @Test func whoHasWaitedLongestForDemandIsFirst() {
    var turns = FairTurns<String>()
    turns.demandExhausted("a")
    turns.demandExhausted("b")
    turns.append("c")
    // Without demand, only elements that may have something other than records get a turn.
    #expect(turns.next(available: 0)?.element == "c")
    #expect(turns.next(available: 0) == nil)
    #expect(!turns.isTurn(available: 0))
    #expect(turns.isTurn(available: 1))
    turns.append("d")
    #expect(turns.next(available: 1)?.element == "a")
    #expect(turns.next(available: 1)?.element == "b")
    #expect(turns.next(available: 1)?.element == "d")
    #expect(turns.next(available: 1) == nil)
  }

  @Test(
    arguments: [
      (1, 1, 1), (10, 1, 10), (10, 3, 3), (2, 3, 1), (0, 3, 0), (Credit.unlimited, 3, Credit.unlimited),
    ] as [(UInt64, Int, UInt64)])
  func theShareLeavesSomethingForTheOthers(available: UInt64, contenders: Int, share: UInt64) {
    var turns = FairTurns<Int>()
    for number in 0..<contenders { turns.append(number) }
    #expect(turns.next(available: available)?.share == share)
    #expect(turns.count == contenders - 1)
  }

  @Test func whoDoesNotWantATurnAnyMoreIsForgotten() {
    var turns = FairTurns<Int>()
    for number in 0..<10 { if number < 5 { turns.demandExhausted(number) } else { turns.append(number) } }
    _ = turns.next(available: 1)
    turns.removeAll { $0 % 2 == 1 }
    var left: [Int] = []
    while let (element, _) = turns.next(available: 1) { left.append(element) }
    #expect(left == [2, 4, 6, 8])
  }

  /// One record at a time: however many records each element has, none gets a second turn before all that have records got one.
  @Test func oneAtATimeGoesRoundAndRound() {
    var random = SeededRandom.printed()
    var turns = FairTurns<Int>()
    var left = (0..<20).map { _ in Int.random(in: 1...50, using: &random) }
    for number in left.indices { turns.append(number) }
    var rounds: [Int: Int] = [:]
    while let (number, share) = turns.next(available: 1) {
      #expect(share == 1)
      rounds[number, default: 0] += 1
      left[number] -= 1
      for other in left.indices where left[other] > 0 {
        #expect(abs(rounds[other, default: 0] - rounds[number]!) <= 1)
      }
      if left[number] > 0 { turns.demandExhausted(number) }
    }
    #expect(left.allSatisfy { $0 == 0 })
  }
}
