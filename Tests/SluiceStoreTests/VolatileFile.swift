import FaultyDisk
import TestSupport

/// The possible contents of a file after a power loss: for each sector, the last synced version or any later one.
struct VolatileFile {
  private struct Sector {
    /// The versions that the disk may have, oldest first. Programs read the last one.
    var versions: [ArraySlice<UInt8>]
    /// Whether a sync has failed since the last write: later syncs don't write it, even if they succeed.
    var isGivenUp = false
  }

  private let sectorSize: Int
  private var sectors: [Sector]
  /// The number of bytes that the file certainly has.
  private var syncedCount: Int
  private var count: Int
  /// Sectors with several possible versions on disk.
  private var uncertain: Set<Int> = []

  /// - Parameter bytes: the contents on disk.
  init(_ bytes: [UInt8], sectorSize: Int) {
    self.sectorSize = sectorSize
    syncedCount = bytes.count
    count = bytes.count
    sectors = stride(from: 0, to: bytes.count, by: sectorSize).map { start in
      let part = bytes[start..<min(start + sectorSize, bytes.count)]
      return Sector(versions: [part + Array(repeating: 0, count: sectorSize - part.count)])
    }
  }

  /// A write starts: the disk may have some of it.
  mutating func begin(_ event: faulty_event) {
    guard event.call == FAULTY_WRITE || event.call == FAULTY_SYNCED_WRITE, event.count > 0 else { return }
    let start = Int(event.offset)
    let end = start + Int(event.count)
    count = max(count, end)
    for index in start / sectorSize...(end - 1) / sectorSize {
      while sectors.count <= index {
        sectors.append(Sector(versions: [ArraySlice(repeating: 0, count: sectorSize)]))
      }
      var next = Array(sectors[index].versions[sectors[index].versions.count - 1])
      let first = max(start, index * sectorSize)
      let last = min(end, (index + 1) * sectorSize)
      let written = UnsafeBufferPointer(start: event.bytes + (first - start), count: last - first)
      next.replaceSubrange(first - index * sectorSize..<last - index * sectorSize, with: written)
      sectors[index].versions.append(next[...])
      sectors[index].isGivenUp = false
      uncertain.insert(index)
    }
  }

  /// The call has returned.
  mutating func end(_ event: faulty_event) {
    switch event.call {
    case FAULTY_SYNCED_WRITE:
      let range = Int(event.offset) / sectorSize...(Int(event.offset + event.count) - 1) / sectorSize
      for index in range { settle(index, hasFailed: event.has_failed != 0) }
    case FAULTY_SYNC:
      for index in uncertain { settle(index, hasFailed: event.has_failed != 0) }
      if event.has_failed == 0 { syncedCount = count }
    default: break
    }
  }

  private mutating func settle(_ index: Int, hasFailed: Bool) {
    if hasFailed {
      sectors[index].isGivenUp = true
    } else if !sectors[index].isGivenUp {
      sectors[index].versions.removeFirst(sectors[index].versions.count - 1)
      uncertain.remove(index)
    }
  }

  /// The file after a power loss.
  ///
  /// - Parameter lost: the percentage of uncertain sectors that have an older version.
  func image(lost: Int, _ random: inout SeededRandom) -> [UInt8] {
    let end = Bool.random(using: &random) ? count : Int.random(in: syncedCount...count, using: &random)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(sectors.count * sectorSize)
    for sector in sectors {
      let isOld = sector.versions.count > 1 && Int.random(in: 0..<100, using: &random) < lost
      bytes += isOld ? sector.versions.dropLast().randomElement(using: &random)! : sector.versions.last!
    }
    return Array(bytes.prefix(max(end, syncedCount)))
  }
}
