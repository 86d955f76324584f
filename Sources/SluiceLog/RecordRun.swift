import SluiceWire

/// Records in the order of their offsets, any of which can be taken out: what of a log is still wanted.
///
/// They lie in chunks. If less than half of a chunk is live, its live records are copied into another one, together with its
/// neighbour's if both are small. So the memory stays within about twice the size of the records, plus the chunk that is being
/// filled. Each step takes at most the time for copying a chunk.
// @unchecked: its memory has one owner, this value, which the lock of its store protects.
struct RecordRun: ~Copyable, @unchecked Sendable {
  /// The size of a full chunk, in bytes. A chunk may be larger to hold a single record.
  private let chunkBytes: Int
  /// The highest bit of this run's chunk numbers.
  let tag: UInt32

  /// By number less the tag; those that are out of use are nil.
  private(set) var chunks: [RecordChunk?] = []
  private(set) var unused: [UInt32] = []
  /// The numbers of the chunks in use, in the order of their records. All but the last have live records.
  private(set) var order: [UInt32] = []

  /// Live records, and the bytes of their items.
  private(set) var count = 0
  private(set) var bytes = 0
  /// Memory of all chunks.
  private(set) var chunkMemory = 0

  static let leastChunkBytes = 1024

  init(chunkBytes: Int, tag: UInt32) {
    self.chunkBytes = max(chunkBytes, Self.leastChunkBytes)
    self.tag = tag
  }

  deinit {
    for case let chunk? in chunks { unsafe chunk.memory.deallocate() }
  }

  var memoryBytes: Int {
    chunkMemory + chunks.capacity * MemoryLayout<RecordChunk?>.stride
      + (unused.capacity + order.capacity) * MemoryLayout<UInt32>.stride
  }

  /// The size of the records, including the run's own bookkeeping.
  var footprint: Int { bytes + count * RecordChunk.entryBytes }

  /// Whether a place is in this run.
  func holds(_ place: RecordPlace) -> Bool { place.chunk & Self.tagBit == tag }

  static let tagBit: UInt32 = 1 << 31

  // MARK: Looking

  /// The entry at a place, which must hold a record.
  @inline(__always)
  func entry(_ place: RecordPlace) -> RecordEntry { chunk(place.chunk)[Int(place.entry)] }

  /// The item at a place, which must hold a record. It stays until the run is next changed.
  @inline(__always)
  func item(_ place: RecordPlace) -> UnsafeRawBufferPointer {
    let chunk = chunk(place.chunk)
    return unsafe chunk.item(chunk[Int(place.entry)])
  }

  /// The oldest record.
  var first: RecordPlace? { first(from: 0) }

  /// The first record with this offset or a later one.
  func first(from offset: UInt64) -> RecordPlace? {
    var position = self.position(holding: offset)
    while position < order.count {
      let number = order[position]
      let chunk = chunk(number)
      let entry = chunk.firstLive(from: offset)
      if entry < chunk.count { return RecordPlace(chunk: number, entry: UInt32(entry)) }
      position += 1
    }
    return nil
  }

  /// Bytes of the live records with offsets from `offset` to before `end`.
  func bytes(from offset: UInt64, before end: UInt64) -> Int {
    guard offset < end else { return 0 }
    var bytes = 0
    for position in position(holding: offset)..<order.count {
      let chunk = chunk(order[position])
      guard chunk.records > 0 else { continue }
      if chunk.baseOffset >= end { break }
      if chunk.baseOffset >= offset, chunk[chunk.count - 1].offset < end {
        bytes += chunk.bytes
        continue
      }
      var entry = chunk.firstLive(from: offset)
      while entry < chunk.count, chunk[entry].offset < end {
        bytes += Int(chunk[entry].length)
        entry += 1
      }
    }
    return bytes
  }

  /// The live record behind the one at `place`.
  func next(after place: RecordPlace) -> RecordPlace? {
    let chunk = chunk(place.chunk)
    var entry = Int(place.entry) + 1
    while entry < chunk.count {
      if chunk[entry].isLive { return RecordPlace(chunk: place.chunk, entry: UInt32(entry)) }
      entry += 1
    }
    return first(from: chunk[chunk.count - 1].offset + 1)
  }

  /// The record that has `count` live ones between it and the end, or the first of all if there are fewer. At least 1.
  func last(_ count: UInt64) -> RecordPlace? {
    var left = count
    for number in order.reversed() {
      let chunk = chunk(number)
      guard UInt64(chunk.records) >= left else {
        left -= UInt64(chunk.records)
        continue
      }
      for entry in (0..<chunk.count).reversed() where chunk[entry].isLive {
        left -= 1
        if left == 0 { return RecordPlace(chunk: number, entry: UInt32(entry)) }
      }
    }
    return first
  }

  /// The first live record with this time or a later one.
  ///
  /// - Parameter isOrdered: whether times never decrease in the run; otherwise all records are examined.
  func first(atOrAfter time: Int64, isOrdered: Bool) -> RecordPlace? {
    let start =
      !isOrdered
      ? 0
      : order.indices.partition {
        let chunk = chunk(order[$0])
        return chunk.count == 0 || chunk[chunk.count - 1].time >= time
      }
    for number in order[start...] {
      let chunk = chunk(number)
      for entry in chunk.firstLive..<chunk.count where chunk[entry].isLive && chunk[entry].time >= time {
        return RecordPlace(chunk: number, entry: UInt32(entry))
      }
    }
    return nil
  }

  @inline(__always)
  func chunk(_ number: UInt32) -> RecordChunk {
    unsafe chunks[Int(number & ~Self.tagBit)].unsafelyUnwrapped
  }

  /// The position in the order of the last chunk that begins at or before `offset`; 0 if there is none.
  private func position(holding offset: UInt64) -> Int {
    // One that stands alone may be empty.
    let searched = 0..<(order.count > 1 ? order.count : 0)
    return max(searched.partition { chunk(order[$0]).baseOffset > offset } - 1, 0)
  }

  // MARK: Changing

  /// Adds a record behind all others. Entries that move are updated in `table`.
  mutating func append(
    _ item: UnsafeRawBufferPointer, offset: UInt64, time: Int64, hash: UInt32, _ table: inout KeyTable
  ) -> RecordPlace {
    if order.isEmpty || !chunk(order[order.count - 1]).hasRoom(for: item.count) {
      open(for: item.count)
      // The one before isn't filled any more, so that it counts what it could do without.
      if order.count > 1 { tidy(order.count - 2, &table) }
    }
    let number = order[order.count - 1]
    let index = Int(number & ~Self.tagBit)
    let entry = chunk(number).count
    unsafe chunks[index]!.append(item, offset: offset, time: time, hash: hash)
    count += 1
    bytes += item.count
    return RecordPlace(chunk: number, entry: UInt32(entry))
  }

  /// Takes a record out. Entries that move are updated in `table`.
  mutating func remove(_ place: RecordPlace, _ table: inout KeyTable) {
    let index = Int(place.chunk & ~Self.tagBit)
    let entry = entry(place)
    count -= 1
    bytes -= Int(entry.length)
    chunks[index]!.kill(Int(place.entry))
    let chunk = chunk(place.chunk)
    if place.chunk != order[order.count - 1], chunk.footprint * 2 < chunk.capacity {
      tidy(position(holding: entry.offset), &table)
    }
    if count == 0 { startOver() }
  }

  /// The last chunk is all there is, and without a record: it is filled anew.
  private mutating func startOver() {
    let index = Int(order[0] & ~Self.tagBit)
    if chunk(order[0]).capacity > chunkBytes { discard(at: 0) } else { chunks[index]!.clear() }
  }

  private mutating func open(for item: Int) {
    // Small topics are many: they begin small.
    let usual = min(max(footprint / 2, Self.leastChunkBytes), chunkBytes)
    add(RecordChunk(capacity: max(usual, item + RecordChunk.entryBytes)), at: order.count)
  }

  private mutating func add(_ chunk: RecordChunk, at position: Int) {
    chunkMemory += chunk.capacity
    let index: UInt32
    if let number = unused.popLast() {
      index = number
      chunks[Int(number)] = chunk
    } else {
      index = UInt32(chunks.count)
      chunks.append(chunk)
    }
    order.insert(index | tag, at: position)
  }

  private mutating func discard(at position: Int) {
    let number = order.remove(at: position)
    let index = Int(number & ~Self.tagBit)
    chunkMemory -= chunk(number).capacity
    unsafe chunk(number).memory.deallocate()
    chunks[index] = nil
    unused.append(UInt32(index))
  }

  /// Copies out the chunk at `position`, which isn't the last, if it is worth it.
  private mutating func tidy(_ position: Int, _ table: inout KeyTable) {
    let sparse = chunk(order[position])
    guard sparse.footprint * 2 < sparse.capacity else { return }
    if sparse.records == 0 { return discard(at: position) }
    // Small ones are put together, so that their number stays in proportion. Each time there is one less, so that this costs no
    // more than filling them did.
    let limit = min(chunkBytes, max(footprint / 2, Self.leastChunkBytes)) / 2
    var range = position..<position + 1
    if position > 0, chunk(order[position - 1]).footprint + sparse.footprint <= limit {
      range = position - 1..<position + 1
    } else if position + 2 < order.count, chunk(order[position + 1]).footprint + sparse.footprint <= limit {
      range = position..<position + 2
    }
    let footprint = range.reduce(0) { $0 + chunk(order[$1]).footprint }
    var copy = RecordChunk(capacity: footprint)
    add(copy, at: range.upperBound)
    let number = order[range.upperBound]
    for position in range {
      let old = order[position]
      let source = chunk(old)
      for index in source.firstLive..<source.count where source[index].isLive {
        let entry = source[index]
        let place = RecordPlace(chunk: old, entry: UInt32(index))
        if let slot = table.find(entry.hash, where: { $0 == place }) {
          table[slot] = RecordPlace(chunk: number, entry: UInt32(copy.count))
        }
        unsafe copy.append(source.item(entry), offset: entry.offset, time: entry.time, hash: entry.hash)
      }
    }
    chunks[Int(number & ~Self.tagBit)] = copy
    for position in range.reversed() { discard(at: position) }
  }
}
