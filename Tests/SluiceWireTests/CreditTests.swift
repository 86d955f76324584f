import SluiceWire
import TestSupport
import Testing

/// A ``Credit`` by reference, since an expectation can't change a value.
private final class Account {
  private var credit: Credit

  init(granted: UInt64 = 0) { credit = Credit(granted: granted) }

  var granted: UInt64 { credit.granted }
  var spent: UInt64 { credit.spent }
  var available: UInt64 { credit.available }
  func raise(to granted: UInt64) -> Bool { credit.raise(to: granted) }
  func spend(_ count: UInt64) -> Bool { credit.spend(count) }
}

@Suite("Credit")
struct CreditTests {
  @Test("is the grant less what was spent")
  func spending() {
    let credit = Account(granted: 3)
    #expect(credit.available == 3)
    #expect(credit.spend(2))
    #expect(credit.available == 1)
    #expect(!credit.spend(2))
    #expect([credit.available, credit.spent] == [1, 2])
    #expect(credit.spend(1))
    #expect(credit.spend(0))
    #expect(credit.available == 0)
    #expect(!credit.spend(1))
  }

  @Test("only a larger grant counts: one that is repeated, late or zero changes nothing")
  func grants() {
    let credit = Account()
    #expect(credit.available == 0)
    #expect(credit.raise(to: 10))
    #expect(!credit.raise(to: 10))
    #expect(!credit.raise(to: 4))
    #expect(!credit.raise(to: 0))
    #expect(credit.spend(10))
    #expect(!credit.raise(to: 10))
    #expect(credit.available == 0)
    #expect(credit.raise(to: 11))
    #expect([credit.granted, credit.spent, credit.available] == [11, 10, 1])
  }

  @Test("without limit is forever")
  func unlimited() {
    let credit = Account(granted: 1)
    #expect(credit.spend(1))
    #expect(credit.raise(to: Credit.unlimited))
    #expect(credit.available == Credit.unlimited)
    #expect(credit.spend(5))
    #expect(credit.spend(.max - 6))
    #expect(credit.available == Credit.unlimited)
    #expect(credit.spend(.max))
    #expect(credit.available == Credit.unlimited)
    #expect(!credit.raise(to: Credit.unlimited))
    #expect(!credit.raise(to: 7))
    #expect(credit.available == Credit.unlimited)
  }

  @Test("the largest limit is a limit")
  func largest() {
    let credit = Account(granted: .max - 1)
    #expect(credit.spend(.max - 1))
    #expect(credit.available == 0)
    #expect(!credit.spend(1))
    #expect(!credit.spend(.max))
  }

  @Test("never allows more than the largest grant, in whatever order grants and deliveries come")
  func model() {
    var random = SeededRandom.printed(for: "credit")
    for _ in 0..<1000 {
      let credit = Account()
      var largest: UInt64 = 0
      var spent: UInt64 = 0
      for _ in 0..<30 {
        if .random(using: &random) {
          let grant = UInt64.random(in: 0...100, using: &random)
          #expect(credit.raise(to: grant) == (grant > largest))
          largest = max(largest, grant)
        } else {
          let count = UInt64.random(in: 0...20, using: &random)
          let isAllowed = spent + count <= largest
          #expect(credit.spend(count) == isAllowed)
          if isAllowed { spent += count }
        }
        #expect([credit.available, credit.spent] == [largest - spent, spent])
      }
    }
  }
}
