import SluiceWire
import Synchronization

/// Says which record stands at a position; one for about every 4 KiB of a segment, always at the start of a batch.
struct IndexEntry {
  /// The least bytes between two entries.
  static let spacing = 4096

  var record: UInt32
  var position: UInt32
  var recordBytes: UInt32
  var time: Int64
}

/// A boundary between two records of a segment.
struct Place {
  /// Index within the segment of the record that follows.
  var record: Int

  /// Where the record before ends: ahead of the time marks, if any, that belong to the record that follows.
  var position: Int

  /// Bytes of all records before, time marks not counted.
  var recordBytes: Int

  /// The time of the record that follows; at the end of the segment that of the record before.
  var time: Int64
}

extension IndexEntry {
  var place: Place {
    Place(record: Int(record), position: Int(position), recordBytes: Int(recordBytes), time: time)
  }
}

extension Segment {
  /// Adds an entry for the batch that is about to be committed. Under the log's lock.
  func addIndexEntry(_ place: Place) {
    let count = indexCount.load(ordering: .relaxed)
    unsafe (index + count).initialize(
      to: IndexEntry(
        record: UInt32(truncatingIfNeeded: place.record),
        position: UInt32(truncatingIfNeeded: place.position),
        recordBytes: UInt32(truncatingIfNeeded: place.recordBytes), time: place.time))
    indexCount.store(count + 1, ordering: .releasing)
  }

  /// The last entry for which `isBefore` holds; it must hold for a prefix of the entries. From any thread.
  @inline(__always)
  func lastIndexEntry(where isBefore: (IndexEntry) -> Bool) -> IndexEntry? {
    let count = (0..<indexCount.load(ordering: .acquiring)).partition { unsafe !isBefore(index[$0]) }
    return unsafe count > 0 ? index[count &- 1] : nil
  }

  /// The first place at which `isReached` holds; it must hold from there on. The segment's end when it holds nowhere.
  ///
  /// Walks at most from one index entry to the next. From any thread.
  func firstPlace(where isReached: (Place) -> Bool) -> Place {
    let end = end
    var place =
      lastIndexEntry { $0.record < end.records && !isReached($0.place) }?.place
      ?? Place(record: 0, position: 0, recordBytes: 0, time: .min)
    while place.record < end.records {
      var position = place.position
      var word = unsafe RecordLayout.word(at: memory + position)
      while !RecordLayout.isRecord(word) {
        place.time = unsafe RecordLayout.time(ofMarkAt: memory + position)
        position += RecordLayout.timeMarkSize
        word = unsafe RecordLayout.word(at: memory + position)
      }
      if isReached(place) { break }
      let size = RecordLayout.itemSize(word)
      place.position = position + size
      place.recordBytes += size
      place.record += 1
    }
    return place
  }
}
