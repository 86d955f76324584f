import Glibc

/// The inserts of an output, and the number of copied bytes before each.
struct NATSInsertQueue {
  struct Entry {
    private let insert: NATSInsert
    /// The number of copied bytes of the connection before it.
    let place: Int
    /// The part that wasn't sent yet.
    fileprivate(set) var range: Range<Int>

    fileprivate init(_ insert: NATSInsert, _ place: Int) {
      self.insert = insert
      self.place = place
      range = 0..<insert.count
    }

    var memory: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: insert.memory[range]) }

    /// The vector for the transport, which only reads it.
    var vector: iovec {
      unsafe iovec(iov_base: UnsafeMutableRawPointer(mutating: memory.baseAddress), iov_len: range.count)
    }
  }

  private var entries: [Entry] = []
  private var first = 0
  /// The number of bytes that weren't sent yet.
  private(set) var count = 0

  /// The inserts that weren't sent completely.
  var all: ArraySlice<Entry> { entries[first...] }

  var firstPlace: Int? { first < entries.count ? entries[first].place : nil }
  var lastPlace: Int? { first < entries.count ? entries[entries.count - 1].place : nil }

  /// - Parameter place: the number of copied bytes of the connection before it.
  mutating func append(_ insert: NATSInsert, behind place: Int) {
    guard insert.count > 0 else { return }
    entries.append(Entry(insert, place))
    count += insert.count
  }

  /// Removes up to `most` bytes from the beginning of the first insert. Returns how many.
  mutating func removeFirst(_ most: Int) -> Int {
    let removed = min(most, entries[first].range.count)
    entries[first].range = entries[first].range.dropFirst(removed)
    count -= removed
    if entries[first].range.isEmpty { first += 1 }
    // Releases the memory of removed entries. Each entry is moved once on average.
    if first > entries.count / 2 {
      entries.removeFirst(first)
      first = 0
    }
    return removed
  }

  /// Removes up to `most` bytes from the end of the last insert. Returns how many.
  mutating func removeLast(_ most: Int) -> Int {
    let last = entries.count - 1
    let removed = min(most, entries[last].range.count)
    entries[last].range = entries[last].range.dropLast(removed)
    count -= removed
    if entries[last].range.isEmpty { entries.removeLast() }
    return removed
  }
}
