import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Searching sorted names by a pattern, compared with checking all of them.
struct PatternSeekerTests {
  /// The names found in sorted names, and how many of these were checked.
  private func search(_ names: [String], _ text: String) throws -> (found: [String], looks: Int) {
    var seeker = PatternSeeker(try TopicPattern(text))
    var (found, looks, place) = ([String](), 0, 0)
    while place < names.count {
      looks += 1
      switch seeker.judge(names[place]) {
      case .selected:
        found.append(names[place])
        place += 1
      case .next: place += 1
      case .seek:
        #expect(names[place].utf8.lexicographicallyPrecedes(seeker.target), "\(text) at \(names[place])")
        place = names.firstIndex { !$0.utf8.lexicographicallyPrecedes(seeker.target) } ?? names.count
      case .end: return (found, looks)
      }
    }
    return (found, looks)
  }

  private func sorted(_ names: some Sequence<String>) -> [String] {
    names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func theSameNamesAreFoundAsByLookingAtAll(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    // Characters that sort before and after the dot, and beyond ASCII.
    let tokens = ["a", "a-b", "a/", "ab", "b", "!", "K", "é", "_inbox", "_inboxes", "0"]
    func name(_ tokens: [String]) -> String {
      (0..<Int.random(in: 1...4, using: &random)).map { _ in tokens.randomElement(using: &random)! }
        .joined(separator: ".")
    }
    let names = sorted(Set((0..<150).map { _ in name(tokens) }))
    for _ in 0..<60 {
      var text = name(tokens + ["*", "*", "*", "*"])
      if Bool.random(using: &random) { text += ".>" }
      let pattern = try TopicPattern(text)
      let expected = names.filter { pattern.selects($0) }
      #expect(try search(names, text).found == expected, "\(text)")
    }
    #expect(try search(names, ">").found == names.filter { try TopicPattern(">").selects($0) })
  }

  @Test func aSearchLooksAtWhatMatchesAndNotAtTheRest() throws {
    let names = sorted((0..<100).flatMap { group in (0..<100).map { "site\(group).sensor\($0).value" } })
    for (text, found, looks) in [
      ("site7.sensor3.value", 1, 4), ("site7.*.value", 100, 210), ("site7.>", 100, 103),
      ("*.sensor3.value", 100, 310), ("*.nothing.>", 0, 310), ("none.>", 0, 3), ("zzz.*", 0, 2),
    ] {
      let result = try search(names, text)
      #expect(result.found.count == found, "\(text)")
      #expect(result.looks <= looks, "\(text) looks at \(result.looks)")
    }
  }

  @Test func inboxesAreLeftOutTogether() throws {
    let names = sorted((0..<1_000).map { "_inbox.\($0)" } + ["_inbox", "_inboxes", "a", "z"])
    let (found, looks) = try search(names, ">")
    #expect(found == ["_inboxes", "a", "z"])
    #expect(looks < 8)
  }
}
