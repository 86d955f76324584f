import SluiceWire
import TestSupport
import Testing

struct ShortTableTests {
  /// Compared with a dictionary, across the length at which the table becomes one, in both directions.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func itHasWhatADictionaryHas(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var table = ShortTable<Int, Int>()
    var model: [Int: Int] = [:]
    for step in 0..<400 {
      let key = Int.random(in: 0..<(step % 100 < 50 ? 24 : 5), using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: #expect(table.removeValue(forKey: key) == model.removeValue(forKey: key))
      case 1:
        table[key] = nil
        model[key] = nil
      default:
        table[key] = step
        model[key] = step
      }
      if step % 100 > 80 {
        for key in 5..<24 { #expect(table.removeValue(forKey: key) == model.removeValue(forKey: key)) }
      }
      #expect(table.count == model.count)
      #expect(table.isEmpty == model.isEmpty)
      #expect(Set(table.keys) == Set(model.keys))
      #expect(table.values.sorted() == model.values.sorted())
      for key in 0..<24 { #expect(table[key] == model[key]) }
    }
  }

  @Test func aShortTableKeepsTheOrder() {
    var table = ShortTable<String, Int>()
    for (number, key) in ["c", "a", "d", "b"].enumerated() { table[key] = number }
    table["a"] = 9
    table["d"] = nil
    #expect(table.keys == ["c", "a", "b"])
    #expect(table.values == [0, 9, 3])
  }

  @Test func aCopyIsAnotherTable() {
    var table = ShortTable<Int, Int>()
    table[1] = 1
    let copy = table
    table[1] = 2
    table[2] = 2
    #expect(copy[1] == 1)
    #expect(copy.count == 1)
    for number in 0..<40 { table[number] = number }
    let long = table
    table[7] = nil
    table[50] = 50
    #expect(long.count == 40)
    #expect(long[7] == 7)
    #expect(long[50] == nil)
    #expect(MemoryLayout<ShortTable<Int, Int>>.size == MemoryLayout<Int>.size)
  }
}
