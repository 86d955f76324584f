import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// Places of a durable topic that were looked up in its store, to compute the age and bytes of the backlogs of cursors and groups. From any thread.
///
/// Bounded: the oldest of ``kept`` places is replaced. A look-up without an exact place starts to read it for the next time, one read at a time.
package final class StoredPlaces: Sendable {
  /// A record in the store.
  package struct Place: Hashable, Sendable {
    package var offset: UInt64
    /// The time at which it, or the first record of its batch, was appended; in milliseconds since 1970.
    package var time: Int64
    /// Bytes of records from there to `end`.
    package var bytes: UInt64
    /// The offset after the last record that was stored when the place was looked up.
    package var end: UInt64
  }

  private struct State {
    /// In the order in which they were read.
    var places: [Place] = []
    var isReading = false
  }

  package static let kept = 64

  private let state = Mutex(State())

  package init() {}

  /// The place of a record: exact if it was read, else estimated from the nearest places; nil if there are none.
  package func place(of offset: UInt64) -> (place: Place, isExact: Bool)? {
    let places = state.withLock { $0.places }
    if let exact = places.last(where: { $0.offset == offset }) { return (exact, true) }
    let below = places.filter { $0.offset < offset }.max { $0.offset < $1.offset }
    guard let below else { return nil }
    let above = places.filter { $0.offset > offset }.min { $0.offset < $1.offset }
    let share = above.map { Double(offset - below.offset) / Double($0.offset - below.offset) } ?? 0
    var place = below
    place.offset = offset
    if let above {
      place.time += Int64(Double(above.time - below.time) * share)
      if above.bytes < below.bytes { place.bytes -= UInt64(Double(below.bytes - above.bytes) * share) }
    }
    return (place, false)
  }

  /// - Returns: false if another read is in progress.
  fileprivate func beginReading() -> Bool {
    state.withLock { state in
      if state.isReading { return false }
      state.isReading = true
      return true
    }
  }

  package func add(_ places: [Place]) {
    state.withLock { state in
      state.isReading = false
      for place in places {
        state.places.removeAll { $0.offset == place.offset }
        state.places.append(place)
      }
      if state.places.count > Self.kept { state.places.removeFirst(state.places.count - Self.kept) }
    }
  }
}

extension StoreTopicState {
  /// Starts to read unknown places, unless a read is in progress. From any thread; returns at once.
  func prepare(_ offsets: [UInt64]) {
    guard !offsets.isEmpty, places.beginReading() else { return }
    findPlaces(offsets) {}
  }

  /// Reads places on a thread of the store, and calls `completion` there; never if the store is closed before.
  package func findPlaces(_ offsets: [UInt64], _ completion: @escaping @Sendable () -> Void) {
    service.read(id) { [self] store in
      findPlaces(offsets.prefix(StoredPlaces.kept), [], store, completion)
    }
  }

  /// Reads one batch for each offset, one after the other.
  private func findPlaces(
    _ offsets: ArraySlice<UInt64>, _ found: [StoredPlaces.Place], _ store: any ShardStore,
    _ completion: @escaping @Sendable () -> Void
  ) {
    guard let offset = offsets.first, let extent = try? store.extent(of: id) else {
      places.add(found)
      return completion()
    }
    let header = ReadHeader()
    unsafe store.read(id, from: offset, bytes: 1) { [id] first, value in
      header.value = unsafe BatchView(value, of: id, at: first)?.header
      // Skips a damaged batch.
      return header.value == nil
    } _: { [self] _ in
      let place = header.value.map { StoredPlaces.Place(offset, in: $0, extent) }
      findPlaces(offsets.dropFirst(), found + [place].compactMap { $0 }, store, completion)
    }
  }
}

/// The header of the batch that was read.
// @unchecked: belongs to one read, which makes one call after another.
private final class ReadHeader: @unchecked Sendable {
  var value: BatchHeader?
}

extension StoredPlaces.Place {
  fileprivate init(_ offset: UInt64, in header: BatchHeader, _ extent: StoredExtent) {
    let passed = offset > header.firstOffset ? offset - header.firstOffset : 0
    let before = header.bytesBefore + UInt64(header.recordBytes) * passed / UInt64(header.records)
    self.init(
      offset: offset, time: header.firstTime, bytes: extent.bytesThrough - min(before, extent.bytesThrough),
      end: extent.head)
  }
}
