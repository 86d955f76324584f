/// Finds the word that a mistyped word is meant to be.
public enum Spelling {
  /// The candidate nearest to `word`, if one is near enough for a typing error; the first of several equally near ones.
  public static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    nearest(to: word, in: candidates, limit: 1).first
  }

  /// The end of a message about a word that isn't known: "; did you mean 'x'?", or "; there are x, y".
  ///
  /// - Parameters:
  ///   - otherwise: the clause if no word is near; nil to name all words.
  ///   - quoted: formats the near word for the message.
  public static func advice(
    for word: String, in words: [String], otherwise: String? = nil,
    _ quoted: (String) -> String = { "'\($0)'" }
  ) -> String {
    if let near = nearest(to: word, in: words) { return "; did you mean \(quoted(near))?" }
    return "; " + (otherwise ?? "there are \(words.joined(separator: ", "))")
  }

  /// The candidates that are near enough to `word` for a typing error, the nearest first, at most `limit`.
  public static func nearest(
    to word: String, in candidates: some Sequence<String>, limit: Int
  ) -> [String] {
    // A third of the letters may be wrong; a prefix is always near enough.
    let letters = Array(word.utf8)
    var near: [(candidate: String, distance: Int)] = []
    for candidate in candidates {
      let isPrefix = letters.count >= 3 && candidate.utf8.starts(with: letters)
      let distance = isPrefix ? 1 : distance(letters, Array(candidate.utf8))
      let allowed = max(1, min(letters.count, candidate.utf8.count) / 3)
      guard distance <= allowed else { continue }
      // After equally near candidates.
      near.insert((candidate, distance), at: near.firstIndex { $0.distance > distance } ?? near.count)
      if near.count > limit { near.removeLast() }
    }
    return near.map(\.candidate)
  }

  /// The number of letters to add, drop, replace or swap with their neighbor to get from one word to the other.
  static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        let isSame = left[i] == right[j]
        var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (isSame ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          cost = min(cost, beforeLast[j - 1] + 1)
        }
        row.append(cost)
      }
      beforeLast = last
      last = row
    }
    return last[right.count]
  }
}
