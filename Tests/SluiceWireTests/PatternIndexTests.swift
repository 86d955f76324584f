import SluiceWire
import Testing
import TestSupport

@Suite("The index of patterns")
struct PatternIndexTests {
  @Test(
    "finds what the patterns themselves would select, whatever was entered and taken out", arguments: 0..<20)
  func naive(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var index = PatternIndex<UInt64>()
    var entered: [UInt64: TopicPattern] = [:]
    for number in 0..<400 as Range<UInt64> {
      if Int.random(in: 0..<3, using: &random) == 0,
        let (old, pattern) = entered.min(by: { $0.key < $1.key })
      {
        index.remove(pattern, number: old)
        entered[old] = nil
      }
      let pattern = try TopicPattern(Self.pattern(&random))
      index.insert(pattern, number: number, number)
      entered[number] = pattern
      #expect(index.count == entered.count)
      let name = Self.name(&random)
      #expect(
        index.values(selecting: name) == entered.filter { $0.value.selects(name) }.keys.sorted(), "\(name)")
    }
    for (number, pattern) in entered { index.remove(pattern, number: number) }
    #expect(index.count == 0)
    #expect(index.values(selecting: "a").isEmpty)
  }

  @Test("takes out what is there under the number, and nothing else")
  func numbers() throws {
    var index = PatternIndex<String>()
    let pattern = try TopicPattern("a.*")
    index.insert(pattern, number: 1, "one")
    index.insert(pattern, number: 2, "two")
    index.remove(pattern, number: 3)
    index.remove(try TopicPattern("a.>"), number: 1)
    index.remove(pattern, number: 1)
    #expect(index.values(selecting: "a.b") == ["two"])
    #expect(index.count == 1)
  }

  @Test("leaves a copy as it was")
  func copies() throws {
    var index = PatternIndex<Int>()
    index.insert(try TopicPattern(">"), number: 1, 1)
    let copy = index
    index.insert(try TopicPattern("a"), number: 2, 2)
    index.remove(try TopicPattern(">"), number: 1)
    #expect(copy.values(selecting: "a") == [1])
  }

  private static func name(_ random: inout SeededRandom) -> String {
    let first = ["a", "b", "_inbox", "é"].randomElement(using: &random)!
    return tokens(first, ["a", "b", "é"], &random).joined(separator: ".")
  }

  private static func pattern(_ random: inout SeededRandom) -> String {
    let first = ["a", "b", "*", "_inbox", "é"].randomElement(using: &random)!
    var tokens = tokens(first, ["a", "b", "*", "é"], &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: tokens.append(">")
    case 1: tokens = [">"]
    default: break
    }
    return tokens.joined(separator: ".")
  }

  private static func tokens(
    _ first: String, _ others: [String], _ random: inout SeededRandom
  ) -> [String] {
    [first] + (0..<Int.random(in: 0...3, using: &random)).map { _ in others.randomElement(using: &random)! }
  }
}
