import SluiceWire

/// One record of a chunk.
struct RecordEntry {
  var offset: UInt64
  var time: Int64
  /// Where the item begins.
  var position: UInt32
  /// The item's bytes, its word included; 0 when the record isn't wanted any more.
  var length: UInt32
  /// The hash of the key.
  var hash: UInt32

  var isLive: Bool { length > 0 }
}

/// Some records of a run, in one block of memory: items from the front, entries from the back.
///
/// ```
/// | item 0 | item 1 | …      free      … | entry 1 | entry 0 |
/// ```
///
/// Its owner frees its memory.
@safe
struct RecordChunk {
  static let entryBytes = MemoryLayout<RecordEntry>.stride

  let memory: UnsafeMutableRawPointer
  let capacity: Int
  /// Bytes of items at the front.
  private(set) var used = 0
  /// Entries, those of unwanted records included.
  private(set) var count = 0
  /// No entry before this is live.
  private(set) var firstLive = 0
  /// Of live records: how many, and the bytes of their items.
  private(set) var records = 0
  private(set) var bytes = 0

  /// - Parameter capacity: rounded up so that entries are aligned.
  init(capacity: Int) {
    self.capacity = (capacity + 15) & ~15
    unsafe memory = .allocate(byteCount: self.capacity, alignment: 16)
  }

  /// The size of the live records in a chunk of their own.
  var footprint: Int { bytes + records * Self.entryBytes }

  /// The chunk must have entries.
  var baseOffset: UInt64 { self[0].offset }

  subscript(entry: Int) -> RecordEntry {
    @inline(__always) get { unsafe slot(entry).pointee }
  }

  @inline(__always)
  private func slot(_ entry: Int) -> UnsafeMutablePointer<RecordEntry> {
    unsafe (memory + (capacity &- (entry &+ 1) &* Self.entryBytes)).assumingMemoryBound(to: RecordEntry.self)
  }

  func hasRoom(for item: Int) -> Bool {
    capacity - used - count * Self.entryBytes >= item + Self.entryBytes
  }

  /// There must be room.
  mutating func append(_ item: UnsafeRawBufferPointer, offset: UInt64, time: Int64, hash: UInt32) {
    unsafe (memory + used).copyMemory(from: item.baseAddress.unsafelyUnwrapped, byteCount: item.count)
    unsafe slot(count).initialize(
      to: RecordEntry(
        offset: offset, time: time, position: UInt32(truncatingIfNeeded: used),
        length: UInt32(truncatingIfNeeded: item.count), hash: hash))
    used += item.count
    count += 1
    records += 1
    bytes += item.count
  }

  /// Takes a live record out. Its memory comes back with the chunk's.
  mutating func kill(_ entry: Int) {
    records -= 1
    unsafe bytes -= Int(slot(entry).pointee.length)
    unsafe slot(entry).pointee.length = 0
    if entry == firstLive {
      firstLive += 1
      while firstLive < count, unsafe !slot(firstLive).pointee.isLive { firstLive += 1 }
    }
  }

  /// Removes all entries, which are all dead.
  mutating func clear() {
    used = 0
    count = 0
    firstLive = 0
  }

  /// The item of a live record.
  func item(_ entry: RecordEntry) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: memory + Int(entry.position), count: Int(entry.length))
  }

  /// The first live entry with this offset or a later one; `count` if there is none.
  func firstLive(from offset: UInt64) -> Int {
    var entry = (firstLive..<count).partition { unsafe slot($0).pointee.offset >= offset }
    while entry < count, unsafe !slot(entry).pointee.isLive { entry &+= 1 }
    return entry
  }
}

/// The parts of an item that a store of newest records goes by. The item was checked when it came in.
extension RecordLayout {
  /// Whether the record has a key; `item` begins with its word.
  @inline(__always)
  static func hasKey(_ item: UnsafeRawPointer) -> Bool {
    unsafe kind(word(at: item)) == .attributed
      && (item + wordSize).load(as: UInt8.self) & RecordAttributes.Flag.key != 0
  }

  /// The key of a record that has one.
  @inline(__always)
  static func key(_ item: UnsafeRawPointer) -> UnsafeRawBufferPointer {
    let length = unsafe item.loadUnaligned(fromByteOffset: wordSize + 1, as: UInt16.self)
    return unsafe UnsafeRawBufferPointer(start: item + wordSize + 3, count: Int(UInt16(littleEndian: length)))
  }

  /// Whether a record with a key has no payload.
  @inline(__always)
  static func isDeletion(_ item: UnsafeRawPointer) -> Bool {
    let body = unsafe UnsafeRawBufferPointer(start: item + wordSize, count: length(word(at: item)))
    let rest = unsafe body.count - 3 - key(item).count
    if unsafe body[0] & RecordAttributes.Flag.headers == 0 { return rest == 0 }
    return unsafe (try? RecordAttributes(body))?.payload.isEmpty ?? false
  }
}
