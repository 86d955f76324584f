import Glibc

/// The inserts of an output, and how many copied bytes are ahead of each.
struct NATSInsertQueue {
  struct Entry {
    private let insert: NATSInsert
    /// So many copied bytes of the connection are ahead of it.
    let place: Int
    /// The waiting part.
    fileprivate(set) var range: Range<Int>

    fileprivate init(_ insert: NATSInsert, _ place: Int) {
      self.insert = insert
      self.place = place
      range = 0..<insert.count
    }

    var memory: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: insert.memory[range]) }

    /// For the transport, which only reads.
    var vector: iovec {
      unsafe iovec(iov_base: UnsafeMutableRawPointer(mutating: memory.baseAddress), iov_len: range.count)
    }
  }

  private var entries: [Entry] = []
  private var first = 0
  /// The bytes that wait.
  private(set) var count = 0

  /// Those of which something waits.
  var all: ArraySlice<Entry> { entries[first...] }

  var firstPlace: Int? { first < entries.count ? entries[first].place : nil }
  var lastPlace: Int? { first < entries.count ? entries[entries.count - 1].place : nil }

  /// - Parameter place: how many copied bytes of the connection are ahead of it.
  mutating func append(_ insert: NATSInsert, behind place: Int) {
    guard insert.count > 0 else { return }
    entries.append(Entry(insert, place))
    count += insert.count
  }

  /// Removes up to so many bytes from the front of the first insert. Returns how many.
  mutating func removeFirst(_ most: Int) -> Int {
    let removed = min(most, entries[first].range.count)
    entries[first].range = entries[first].range.dropFirst(removed)
    count -= removed
    if entries[first].range.isEmpty { first += 1 }
    // The memory of those that are gone is released, and each entry is moved once on average.
    if first > entries.count / 2 {
      entries.removeFirst(first)
      first = 0
    }
    return removed
  }

  /// Removes up to so many bytes from the end of the last insert. Returns how many.
  mutating func removeLast(_ most: Int) -> Int {
    let last = entries.count - 1
    let removed = min(most, entries[last].range.count)
    entries[last].range = entries[last].range.dropLast(removed)
    count -= removed
    if entries[last].range.isEmpty { entries.removeLast() }
    return removed
  }
}
