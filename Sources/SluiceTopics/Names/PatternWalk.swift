import Glibc
import SluiceWire

/// A search for the topics, or other named values, that a pattern selects, as they were at one moment, in byte order of their names.
///
/// A value over a snapshot of the index of names; topics deleted meanwhile are still found. Each ``next(looks:)`` takes time in proportion to the names that
/// it visits, and may stop before it has found a topic, so that a long search can be spread over turns.
package struct PatternWalk<Value>: Sequence, IteratorProtocol {
  private var names: NameOrder<Value>
  private var seeker: PatternSeeker
  private var place: NameOrder<Value>.Place
  /// Whether the search is complete. The index is then released.
  package private(set) var isDone = false {
    didSet { if isDone { names = NameOrder() } }
  }

  init(_ pattern: TopicPattern, in names: NameOrder<Value>) {
    self.names = names
    seeker = PatternSeeker(pattern)
    place = names.start
  }

  /// The next topic. Visits at most `looks` names, and subtracts their number from `looks`.
  ///
  /// - Returns: nil if the search is complete, or if none was found yet: see ``isDone``.
  package mutating func next(looks: inout Int) -> Value? {
    while looks > 0, !isDone {
      guard let entry = names.entry(at: place) else {
        isDone = true
        break
      }
      looks -= 1
      switch seeker.judge(entry.name) {
      case .selected:
        place = names.place(after: place)
        return entry.value
      case .next: place = names.place(after: place)
      case .seek: place = names.place(behind: place, notBefore: seeker.target)
      case .end: isDone = true
      }
    }
    return nil
  }

  /// The next topic, however long it takes.
  package mutating func next() -> Value? {
    var looks = Int.max
    return next(looks: &looks)
  }
}

extension NameOrder {
  /// The place of an entry. Valid until an entry is inserted or removed.
  package struct Place: Hashable, Sendable {
    fileprivate var chunk: Int
    fileprivate var entry: Int
  }

  /// The number of entries that are visited one by one before a place is searched for.
  private static var nearby: Int { 4 }

  package var start: Place { Place(chunk: 0, entry: 0) }

  /// The entry at a place; nil at the end.
  package func entry(at place: Place) -> Entry? {
    chunks.indices.contains(place.chunk) ? chunks[place.chunk][place.entry] : nil
  }

  package func place(after place: Place) -> Place {
    let next = Place(chunk: place.chunk, entry: place.entry + 1)
    return next.entry < chunks[place.chunk].count ? next : Place(chunk: place.chunk + 1, entry: 0)
  }

  /// The first place behind `place` whose name isn't before `target`, in UTF-8.
  package func place(behind place: Place, notBefore target: [UInt8]) -> Place {
    var place = place
    for _ in 0..<Self.nearby {
      place = self.place(after: place)
      guard let entry = entry(at: place), Self.precedes(entry.name, target) else { return place }
    }
    // In the last chunk that begins before it, or at the beginning of the next.
    var (low, high) = (place.chunk, chunks.count)
    while low + 1 < high {
      let middle = (low + high) / 2
      if Self.precedes(chunks[middle][0].name, target) { low = middle } else { high = middle }
    }
    let chunk = low
    (low, high) = (0, chunks[chunk].count)
    while low < high {
      let middle = (low + high) / 2
      if Self.precedes(chunks[chunk][middle].name, target) { low = middle + 1 } else { high = middle }
    }
    return low < chunks[chunk].count ? Place(chunk: chunk, entry: low) : Place(chunk: chunk + 1, entry: 0)
  }

  private static func precedes(_ name: String, _ target: [UInt8]) -> Bool {
    let answer = unsafe name.utf8.withContiguousStorageIfAvailable { name in
      unsafe target.withUnsafeBufferPointer { target in
        let order = unsafe memcmp(name.baseAddress!, target.baseAddress!, Swift.min(name.count, target.count))
        return order == 0 ? name.count < target.count : order < 0
      }
    }
    return answer ?? name.utf8.lexicographicallyPrecedes(target)
  }
}
