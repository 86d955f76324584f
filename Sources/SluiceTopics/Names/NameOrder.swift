import SluiceWire

/// Values in byte order of their names. The cost of a page depends on its size, not on the number of values.
///
/// ```
/// [a … c] [d … k] [l … z]      chunks, each sorted and behind the one before
/// ```
///
/// Finding a place takes two binary searches; insertion and removal move the rest of one chunk.
package struct NameOrder<Value> {
  package typealias Entry = (name: String, value: Value)

  package private(set) var chunks: [[Entry]] = []
  private let limit: Int

  /// - Parameter chunk: the most entries of a chunk, at least 2.
  init(chunk: Int = 512) {
    limit = max(chunk, 2)
  }

  /// Inserts a value under a name that isn't in use.
  package mutating func insert(_ name: String, _ value: Value) {
    guard !chunks.isEmpty else { return chunks.append([(name, value)]) }
    let index = max(chunksBeginning(notBehind: name) - 1, 0)
    chunks[index].insert((name, value), at: entries(in: chunks[index], before: name, orAt: false))
    guard chunks[index].count > limit else { return }
    let half = chunks[index].count / 2
    let rest = Array(chunks[index][half...])
    chunks[index].removeSubrange(half...)
    chunks.insert(rest, at: index + 1)
  }

  /// Removes the value with exactly this name, if any.
  package mutating func remove(_ name: String) {
    let index = chunksBeginning(notBehind: name) - 1
    guard index >= 0 else { return }
    let place = entries(in: chunks[index], before: name, orAt: false)
    guard place < chunks[index].count, chunks[index][place].name.utf8.elementsEqual(name.utf8) else { return }
    chunks[index].remove(at: place)
    if chunks[index].isEmpty { chunks.remove(at: index) }
  }

  /// Calls `body` in order with each value whose name follows `name`, until it returns false. `name` itself need not exist.
  ///
  /// - Parameter spans: the names to visit, as spans in order and without overlap. Names between spans cost nothing.
  func forEach(after name: String, in spans: [NameSpan] = [.all], _ body: (Value) -> Bool) {
    for span in spans where !span.isBefore(name) {
      let isEntered = !NameSpan.precedes(name, span.first)
      guard forEach(from: isEntered ? name : span.first, orAt: isEntered, to: span, body) else { return }
    }
  }

  /// - Parameter orAt: whether to include the value with exactly that name.
  /// - Returns: false if `body` returned false.
  private func forEach(from name: String, orAt: Bool, to span: NameSpan, _ body: (Value) -> Bool) -> Bool {
    guard !chunks.isEmpty else { return true }
    let first = max(chunksBeginning(notBehind: name) - 1, 0)
    var place = entries(in: chunks[first], before: name, orAt: orAt)
    for chunk in chunks[first...] {
      for entry in chunk[place...] {
        if span.isBefore(entry.name) { return true }
        guard body(entry.value) else { return false }
      }
      place = 0
    }
    return true
  }

  /// The values that follow `name`, in order, at most `limit` of them, and whether there are more.
  package func page(after name: String, atMost limit: Int) -> (values: [Value], more: Bool) {
    var (values, more) = ([Value](), false)
    forEach(after: name) { value in
      more = values.count >= limit
      if !more { values.append(value) }
      return !more
    }
    return (values, more)
  }

  /// All values, in order.
  package var values: [Value] { chunks.flatMap { $0.map(\.value) } }

  package var count: Int { chunks.reduce(0) { $0 + $1.count } }

  /// How many chunks begin with `name` or a name before it.
  private func chunksBeginning(notBehind name: String) -> Int {
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if NameSpan.precedes(name, chunks[middle][0].name) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// How many entries of a chunk come before `name`.
  ///
  /// - Parameter orAt: whether to count the entry with that name as well.
  private func entries(in chunk: [Entry], before name: String, orAt: Bool) -> Int {
    var (low, high) = (0, chunk.count)
    while low < high {
      let middle = (low + high) / 2
      let isBefore =
        orAt ? !NameSpan.precedes(name, chunk[middle].name) : NameSpan.precedes(chunk[middle].name, name)
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension NameOrder: Sendable where Value: Sendable {}
