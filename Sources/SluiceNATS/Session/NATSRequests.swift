import SluiceIO

/// The requests that wait for answers, by number, with their deadlines.
struct NATSRequests {
  struct Entry {
    var subject: String
    /// The output's position after the request. If it exceeds the written output, the request can't have been processed.
    var end: UInt64
    var timeout: Duration
    var deadline: MonotonicTime
    /// Answers may arrive until the caller ends the request.
    var isMany: Bool
  }

  private struct Deadline: HeapElement {
    var time: MonotonicTime
    var number: UInt64

    var heapKey: MonotonicTime { time }
  }

  private var entries: [UInt64: Entry] = [:]
  /// Deadlines of requests that have ended or were extended are dropped when they reach the top.
  private var deadlines = MinHeap<Deadline>()

  var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }

  mutating func add(_ number: UInt64, _ entry: Entry) {
    entries[number] = entry
    deadlines.insert(Deadline(time: entry.deadline, number: number))
  }

  func contains(_ number: UInt64) -> Bool { entries[number] != nil }

  subscript(number: UInt64) -> Entry? { entries[number] }

  @discardableResult
  mutating func remove(_ number: UInt64) -> Entry? {
    let entry = entries.removeValue(forKey: number)
    if deadlines.count > 2 * entries.count + 64 { compact() }
    return entry
  }

  private mutating func compact() {
    // Keeps one deadline per request: the earliest, which reaches the top first.
    var kept: Set<UInt64> = []
    deadlines.keep { [entries] in entries[$0.number] != nil && kept.insert($0.number).inserted }
  }

  /// Extends the time of a request that waits for further answers.
  mutating func prolong(_ number: UInt64, at now: MonotonicTime) {
    // The heap's entry is corrected when it reaches the top.
    if let timeout = entries[number]?.timeout { entries[number]?.deadline = now + timeout }
  }

  /// The earliest deadline, or an earlier time.
  var nextDeadline: MonotonicTime? { entries.isEmpty ? nil : deadlines.first?.time }

  /// Removes the first expired request.
  mutating func popOverdue(at now: MonotonicTime) -> (UInt64, Entry)? {
    while let first = deadlines.first, first.time <= now {
      deadlines.popFirst()
      guard let entry = entries[first.number] else { continue }
      if entry.deadline > now {
        deadlines.insert(Deadline(time: entry.deadline, number: first.number))
      } else {
        entries[first.number] = nil
        return (first.number, entry)
      }
    }
    return nil
  }

  /// Removes and returns all requests, in the order of their numbers.
  mutating func removeAll() -> [(UInt64, Entry)] {
    let all = entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    entries = [:]
    deadlines = MinHeap()
    return all
  }

  /// The first request to this subject.
  func first(to subject: String) -> UInt64? {
    entries.filter { $0.value.subject == subject }.keys.min()
  }
}
