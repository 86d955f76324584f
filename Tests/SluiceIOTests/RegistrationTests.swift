import Testing

@testable import SluiceIO

@Suite struct RegistrationTests {
  private final class Source: EventSource {}

  @Test func aRegistrationThatWasGivenUpFindsNothingEvenWhenItsPlaceIsTakenAgain() throws {
    let loop = try EpollLoop(name: "unused")
    var table = RegistrationTable()
    let first = table.insert(Source(loop: loop, descriptor: -1))
    #expect(table[first] != nil)
    #expect(table.remove(first) != nil)
    let second = table.insert(Source(loop: loop, descriptor: -1))
    #expect(second.place == first.place)
    #expect(table[first] == nil)
    #expect(table.remove(first) == nil)
    #expect(table[second] != nil)
    #expect(table.count == 1)
  }
}
