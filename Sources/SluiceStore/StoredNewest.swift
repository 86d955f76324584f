import SluiceWire

/// The states of a compact topic, little-endian but for the keys:
///
///     record's key: u64 offset, big-endian · value: u8 version 1 · i64 time · the record's item
///     marks' key: u8 0 · value: u8 version 1 · u64 carried before · u64 kept from · u64 deletions from
///
/// The keys are in the order of the offsets, and the marks come first.
public enum StoredNewest {
  private static let version: UInt8 = 1
  /// The size of the fields before a record's item.
  private static let recordHeader = 9

  /// A record as it is stored.
  public struct Record: Hashable, Sendable {
    public var offset: UInt64
    /// In milliseconds since 1970.
    public var time: Int64
    /// With its length word, as in a batch.
    public var item: [UInt8]
  }

  public enum Content: Hashable, Sendable {
    /// Before `carriedBefore` batches count no longer; records before `keptFrom` and deletions before `deletionsFrom` are dropped.
    case marks(carriedBefore: UInt64, keptFrom: UInt64, deletionsFrom: UInt64)
    case record(Record)
  }

  // MARK: Writing

  /// Sets the marks.
  public static func change(
    carriedBefore: UInt64, keptFrom: UInt64, deletionsFrom: UInt64
  ) -> TopicChange.State {
    var writer = ByteWriter()
    writer.integer(version)
    writer.integer(carriedBefore)
    writer.integer(keptFrom)
    writer.integer(deletionsFrom)
    return TopicChange.State(.newest, key: [0], value: writer.bytes)
  }

  /// Stores a record by itself.
  public static func change(
    _ item: UnsafeRawBufferPointer, at offset: UInt64, time: Int64
  ) -> TopicChange.State {
    var writer = ByteWriter()
    writer.bytes.reserveCapacity(recordHeader + item.count)
    writer.integer(version)
    writer.integer(time)
    unsafe writer.raw(item)
    return TopicChange.State(.newest, key: key(offset), value: writer.bytes)
  }

  /// Removes a record.
  public static func removal(at offset: UInt64) -> TopicChange.State {
    TopicChange.State(.newest, key: key(offset), value: nil)
  }

  private static func key(_ offset: UInt64) -> [UInt8] {
    unsafe withUnsafeBytes(of: offset.bigEndian) { unsafe Array($0) }
  }

  // MARK: Reading

  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for what this version of the software doesn't know.
  public static func decode(key: some Collection<UInt8>, value: [UInt8]) throws(StoreError) -> Content {
    let result = unsafe value.withUnsafeBytes { bytes in
      Result { () throws(WireError) in try unsafe decode(key, bytes) }
    }
    do throws(WireError) {
      return try result.get()
    } catch {
      throw StoreError(
        error.code == .unsupported ? .newer : .damaged,
        "a newest record of the store can't be read: \(error.message)")
    }
  }

  /// Why a state can't be one of these; nil when it can.
  static func fault(key: some Collection<UInt8>, value: [UInt8]) -> String? {
    do throws(StoreError) {
      _ = try decode(key: key, value: value)
      return nil
    } catch {
      return error.message
    }
  }

  /// Calls a closure with each record of a batch that has a key, from an offset on. One without a key can only come from a store that something else has
  /// written.
  ///
  /// - Parameters:
  ///   - items: the batch's records and time marks.
  ///   - first: the offset of the batch's first record.
  ///   - time: that record's.
  ///   - start: the offset before which records are passed by.
  ///   - body: gets the record's item, with its length word, its offset and its time.
  /// - Returns: the offset behind the batch's last record.
  package static func forEachRecord(
    in items: UnsafeRawBufferPointer, at first: UInt64, time: Int64, from start: UInt64,
    _ body: (UnsafeRawBufferPointer, _ offset: UInt64, _ time: Int64) -> Void
  ) -> UInt64 {
    var offset = first
    var iterator = unsafe BatchIterator(items, time: time)
    while let record = try? iterator.next() {
      if offset >= start, record.isAttributed, unsafe (try? RecordAttributes(record.body))?.key != nil {
        let item = unsafe UnsafeRawBufferPointer(
          start: record.body.baseAddress.unsafelyUnwrapped - RecordLayout.wordSize,
          count: RecordLayout.wordSize + record.body.count)
        unsafe body(item, offset, record.time)
      }
      offset += 1
    }
    return offset
  }

  private static func decode(
    _ key: some Collection<UInt8>, _ value: UnsafeRawBufferPointer
  ) throws(WireError) -> Content {
    var reader = unsafe ByteReader(value)
    let found: UInt8 = try reader.integer("version")
    guard found == version else {
      throw WireError(.unsupported, "it has version \(found), and this software knows \(version)")
    }
    if key.elementsEqual([0]) {
      let marks = Content.marks(
        carriedBefore: try reader.integer("carried before"), keptFrom: try reader.integer("kept from"),
        deletionsFrom: try reader.integer("deletions from"))
      guard reader.count == 0 else {
        throw WireError(.malformedFrame, "\(reader.count) bytes are left behind its marks")
      }
      return marks
    }
    guard key.count == 8 else {
      throw WireError(.malformedFrame, "its key has \(key.count) bytes, where an offset has 8")
    }
    let time: Int64 = try reader.integer("time")
    let item = unsafe reader.remaining
    try unsafe check(item, at: time)
    let offset = key.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return unsafe .record(Record(offset: offset, time: time, item: Array(item)))
  }

  /// Checks that it is one whole record with a key.
  private static func check(_ item: UnsafeRawBufferPointer, at time: Int64) throws(WireError) {
    var iterator = unsafe BatchIterator(item, count: 1, time: time)
    guard item.count >= RecordLayout.wordSize, let start = item.baseAddress,
      unsafe RecordLayout.isRecord(RecordLayout.word(at: start)), let record = try iterator.next(),
      record.isAttributed, try unsafe RecordAttributes(record.body).key != nil
    else { throw WireError(.malformedBatch, "it is no record with a key") }
    guard try iterator.next() == nil else {
      throw WireError(.malformedBatch, "something follows the record")
    }
  }
}
