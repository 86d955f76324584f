import SluiceIO

/// Commits of which it isn't known yet what becomes of them, in the order in which they were begun, and the calls that wait for those before them.
///
/// `Work` is what a commit is for.
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
  /// The number of the last commit that was begun.
  private(set) var last: UInt64 = 0
  private var flushes: [(number: UInt64, body: @Sendable () -> Void)] = []

  var isEmpty: Bool { entries.isEmpty }
  var count: Int { entries.count }

  /// Returns the number of a commit that begins.
  mutating func next() -> UInt64 {
    last += 1
    return last
  }

  /// The commit that has begun last is under way.
  ///
  /// - Parameter count: how many bytes of records are in it.
  mutating func add(_ work: Work, bytes count: Int = 0, since start: MonotonicTime) {
    entries.append(Entry(number: last, start: start, bytes: count, work: work))
    bytes += count
  }

  /// A commit is settled. Returns nil for one that isn't under way.
  mutating func settle(_ number: UInt64) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.number == number }) else { return nil }
    bytes -= entries[index].bytes
    return entries.remove(at: index)
  }

  /// Forgets all of them.
  mutating func removeAll() {
    entries = []
    bytes = 0
  }

  /// Has `body` taken by ``takeFlushed()`` when all that was begun before is settled.
  mutating func whenSettled(_ body: @escaping @Sendable () -> Void) { flushes.append((last, body)) }

  /// Takes the calls for which nothing is under way any longer, in order.
  mutating func takeFlushed() -> [@Sendable () -> Void] {
    guard !flushes.isEmpty else { return [] }
    let first = entries.first?.number ?? .max
    let settled = flushes.filter { $0.number < first }.map(\.body)
    flushes.removeAll { $0.number < first }
    return settled
  }

  /// Forgets the calls that wait.
  mutating func removeFlushes() { flushes = [] }
}
