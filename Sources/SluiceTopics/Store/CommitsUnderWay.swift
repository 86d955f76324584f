import SluiceIO

/// Commits whose result is pending, in the order in which they were begun, and the callbacks that wait for earlier commits.
///
/// `Work` describes the purpose of a commit.
struct CommitsUnderWay<Work> {
  struct Entry {
    var number: UInt64
    var start: MonotonicTime
    var bytes: Int
    var work: Work
  }

  private(set) var entries: [Entry] = []
  /// Bytes of records in all of them.
  private(set) var bytes = 0
  /// The number of the last commit begun.
  private(set) var last: UInt64 = 0
  private var flushes: [(number: UInt64, body: @Sendable () -> Void)] = []

  var isEmpty: Bool { entries.isEmpty }
  var count: Int { entries.count }

  /// Returns the number of the next commit.
  mutating func next() -> UInt64 {
    last += 1
    return last
  }

  /// Adds the commit that was begun last.
  ///
  /// - Parameter count: the bytes of its records.
  mutating func add(_ work: Work, bytes count: Int = 0, since start: MonotonicTime) {
    entries.append(Entry(number: last, start: start, bytes: count, work: work))
    bytes += count
  }

  /// Removes a settled commit. Returns nil if no commit has that number.
  mutating func settle(_ number: UInt64) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.number == number }) else { return nil }
    bytes -= entries[index].bytes
    return entries.remove(at: index)
  }

  /// Removes all commits.
  mutating func removeAll() {
    entries = []
    bytes = 0
  }

  /// Registers `body`, which ``takeFlushed()`` returns when all commits begun before are settled.
  mutating func whenSettled(_ body: @escaping @Sendable () -> Void) { flushes.append((last, body)) }

  /// Takes the callbacks whose commits are all settled, in order.
  mutating func takeFlushed() -> [@Sendable () -> Void] {
    guard !flushes.isEmpty else { return [] }
    let first = entries.first?.number ?? .max
    let settled = flushes.filter { $0.number < first }.map(\.body)
    flushes.removeAll { $0.number < first }
    return settled
  }

  /// Removes the callbacks that wait.
  mutating func removeFlushes() { flushes = [] }
}
