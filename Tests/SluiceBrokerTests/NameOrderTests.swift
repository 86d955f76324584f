import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

@Suite("Order of names")
struct NameOrderTests {
  private func page(_ order: NameOrder<Int>, after name: String, limit: Int = .max) -> [Int] {
    var page: [Int] = []
    order.forEach(after: name) {
      page.append($0)
      return page.count < limit
    }
    return page
  }

  @Test("names stand in the order of their bytes, and a page begins behind a name, there or not")
  func pages() {
    var order = NameOrder<Int>(chunk: 2)
    for (value, name) in ["b", "a.b", "é", "a", "Z", "e\u{301}", "zz"].enumerated() {
      order.insert(name, value)
    }
    // Z a a.b b e◌́ zz é: canonically equivalent names are distinct.
    #expect(page(order, after: "") == [4, 3, 1, 0, 5, 6, 2])
    #expect(page(order, after: "a") == [1, 0, 5, 6, 2])
    #expect(page(order, after: "a.a", limit: 2) == [1, 0])
    #expect(page(order, after: "é") == [])
    #expect(page(NameOrder<Int>(), after: "a") == [])
    order.remove("é")
    order.remove("unknown")
    #expect(page(order, after: "zz") == [])
    #expect(order.count == 6)
  }

  @Test("random entries and removals are those of a sorted array", arguments: [1, 2, 3] as [UInt64])
  func againstAModel(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var order = NameOrder<Int>(chunk: Int.random(in: 2...9, using: &random))
    var model: [String: Int] = [:]
    for value in 0..<3_000 {
      let name = "t\(Int.random(in: 0..<400, using: &random))"
      if model[name] != nil || Int.random(in: 0..<4, using: &random) == 0 {
        order.remove(name)
        model[name] = nil
      } else {
        order.insert(name, value)
        model[name] = value
      }
      guard value % 10 == 0 else { continue }
      let after = "t\(Int.random(in: 0..<400, using: &random))"
      let expected = model.filter { $0.key > after }.sorted { $0.key < $1.key }.map(\.value)
      let limit = Int.random(in: 1...50, using: &random)
      #expect(page(order, after: after, limit: limit) == Array(expected.prefix(limit)))
      #expect(order.count == model.count)
      #expect(order.values == model.sorted { $0.key < $1.key }.map(\.value))
    }
  }

  @Test("spans are visited in order, each once, and what lies between them isn't")
  func spans() {
    var order = NameOrder<Int>(chunk: 3)
    for value in 0..<100 { order.insert("t\(value + 100)", value) }
    let spans = [
      NameSpan(first: "a", end: "b"), NameSpan(first: "t103", end: "t106"),
      NameSpan(first: "t150", end: "t150\0"), NameSpan(first: "t198", end: nil),
    ]
    func page(after name: String, limit: Int = .max) -> [Int] {
      var page: [Int] = []
      order.forEach(after: name, in: spans) {
        page.append($0)
        return page.count < limit
      }
      return page
    }
    #expect(page(after: "") == [3, 4, 5, 50, 98, 99])
    #expect(page(after: "", limit: 4) == [3, 4, 5, 50])
    #expect(page(after: "t103") == [4, 5, 50, 98, 99])
    #expect(page(after: "t105") == [50, 98, 99])
    #expect(page(after: "t120") == [50, 98, 99])
    #expect(page(after: "t150") == [98, 99])
    #expect(page(after: "t199") == [])
    #expect(page(after: "z") == [])
  }
}
