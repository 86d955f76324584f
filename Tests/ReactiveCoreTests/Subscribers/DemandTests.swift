import Foundation
import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DemandTests {
  typealias Demand = Subscribers.Demand

  @Test func sumsAreUnlimitedIfEitherIsOrIfTooLarge() {
    #expect(Demand.max(100) + .max(42) == .max(142))
    #expect(Demand.max(42) + .unlimited == .unlimited)
    #expect(Demand.unlimited + .max(42) == .unlimited)
    #expect(Demand.max(.max) + .max(1) == .unlimited)
    #expect(Demand.max(.max) + .max(.max) == .unlimited)
    #expect(Demand.max(81) + 42 == .max(123))
    #expect(Demand.max(.max) + 1 == .unlimited)
    #expect(Demand.unlimited + -5 == .unlimited)
    #expect(Demand.max(5) + -2 == .max(3))
    var demand = Demand.none
    demand += .max(1)
    demand += 21
    #expect(demand == .max(22))
  }

  @Test func differencesDoNotFallBelowNone() {
    #expect(Demand.max(100) - .max(42) == .max(58))
    #expect(Demand.max(42) - .max(100) == .none)
    #expect(Demand.max(42) - .unlimited == .none)
    #expect(Demand.unlimited - .unlimited == .unlimited)
    #expect(Demand.unlimited - .max(42) == .unlimited)
    #expect(Demand.max(81) - 42 == .max(39))
    #expect(Demand.unlimited - 42 == .unlimited)
    #expect(Demand.max(5) - -1 == .max(6))
    // Combine's result if the sum exceeds `Int.max`.
    #expect(Demand.max(.max) - -1 == .none)
    var demand = Demand.max(100)
    demand -= .max(1)
    demand -= 21
    #expect(demand == .max(78))
  }

  @Test func productsAreUnlimitedIfTooLarge() {
    #expect(Demand.max(42) * 2 == .max(84))
    #expect(Demand.unlimited * 0 == .unlimited)
    #expect(Demand.max(.max) * 2 == .unlimited)
    var demand = Demand.max(20)
    demand *= 2
    #expect(demand == .max(40))
  }

  @Test func unlimitedIsMoreThanAnyNumberAndEqualToItself() {
    #expect(Demand.unlimited == .unlimited)
    #expect(!(Demand.unlimited < .unlimited))
    #expect(Demand.unlimited >= .unlimited)
    #expect(Demand.unlimited > .max(.max))
    #expect(Demand.max(.max) < .unlimited)
    #expect(Demand.unlimited > 42)
    #expect(Demand.unlimited >= 42)
    #expect(!(Demand.unlimited < 42))
    #expect(!(Demand.unlimited <= 42))
    #expect(Demand.unlimited != 42)
    #expect(42 < Demand.unlimited)
    #expect(42 <= Demand.unlimited)
    #expect(!(42 > Demand.unlimited))
    #expect(!(42 >= Demand.unlimited))
    #expect(42 != Demand.unlimited)
  }

  @Test func comparesWithNumbers() {
    let demand = Demand.max(10)
    #expect(demand == 10)
    #expect(10 == demand)
    #expect(demand != 11)
    #expect(11 != demand)
    #expect(demand > 9)
    #expect(demand >= 10)
    #expect(demand < 11)
    #expect(demand <= 10)
    #expect(9 < demand)
    #expect(10 <= demand)
    #expect(11 > demand)
    #expect(10 >= demand)
    #expect(!(demand > 10))
    #expect(!(10 < demand))
  }

  @Test func showsItself() {
    #expect(Demand.unlimited.description == "unlimited")
    #expect(Demand.max(5).description == "max(5)")
    #expect(Demand.none == .max(0))
    #expect(Demand.max(5).max == 5)
    #expect(Demand.unlimited.max == nil)
  }

  @Test(arguments: [Demand.none, .max(7), .max(.max), .unlimited])
  func survivesCoding(demand: Demand) throws {
    let data = try JSONEncoder().encode([demand])
    #expect(try JSONDecoder().decode([Demand].self, from: data) == [demand])
  }

  @Test func readsNumbersThatAreTooLargeAsUnlimited() throws {
    let data = Data("[18446744073709551615]".utf8)
    #expect(try JSONDecoder().decode([Demand].self, from: data) == [.unlimited])
  }

  @Test func stopsTheProgramOnANegativeNumber() async {
    await #expect(processExitsWith: .failure) { _ = Demand.max(-1) }
    await #expect(processExitsWith: .failure) { _ = Demand.max(1) - 2 }
    await #expect(processExitsWith: .failure) { _ = Demand.max(1) * -1 }
  }
}
