import Glibc
import SluiceWire

/// The records of a topic to show, and the limits of the search.
public struct RecordQuery: Hashable, Sendable {
  /// The position and direction of the search.
  public enum Start: Hashable, Sendable {
    /// Records from a position on, towards newer ones.
    case from(Subscribe.Start)
    /// The last records before an offset; nil for the newest of the topic.
    case before(UInt64?)
  }

  public var start: Start
  /// The key that the records must have; nil for any key, or no key.
  public var key: [UInt8]?
  /// Bytes that must occur in a record's key, its payload, or the name or value of a header; empty for no such condition.
  public var text: [UInt8]
  /// The most records.
  public var count: Int
  /// The most bytes of all records together, keys and headers included; a longer record is returned alone.
  public var bytes: Int
  /// The approximate limit on bytes of records to search.
  public var scannedBytes: Int

  public init(
    _ start: Start = .before(nil), key: [UInt8]? = nil, text: [UInt8] = [], count: Int = 20,
    bytes: Int = 8 << 20, scannedBytes: Int = 32 << 20
  ) {
    self.start = start
    self.key = key
    self.text = text
    self.count = count
    self.bytes = bytes
    self.scannedBytes = scannedBytes
  }

  /// Whether the query selects records by key or text.
  var isFilter: Bool { key != nil || !text.isEmpty }

  /// Returns whether a record is selected.
  func matches(_ record: BatchIterator.Record) -> Bool {
    guard isFilter else { return true }
    guard record.isAttributed else { return unsafe key == nil && has(text, in: record.body) }
    guard let attributes = unsafe try? RecordAttributes(record.body) else { return false }
    if let key {
      guard let found = unsafe attributes.key, unsafe found.elementsEqual(key) else { return false }
    }
    if text.isEmpty { return true }
    if unsafe has(text, in: attributes.payload) { return true }
    if let key = unsafe attributes.key, unsafe has(text, in: key) { return true }
    var isFound = false
    unsafe attributes.forEachHeader { name, value in
      if !isFound { isFound = unsafe has(text, in: name) || has(text, in: value) }
    }
    return isFound
  }

  /// Finds the first byte with `memchr`, then compares. In most records `memchr` alone rejects most bytes.
  private func has(_ text: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
    unsafe text.withUnsafeBytes { sought in
      guard let first = unsafe sought.first, let start = sought.baseAddress else { return true }
      guard let base = bytes.baseAddress, bytes.count >= sought.count else { return false }
      let end = bytes.count - sought.count + 1
      var position = 0
      while position < end, let found = unsafe memchr(base + position, Int32(first), end - position) {
        if unsafe memcmp(found, start, sought.count) == 0 { return true }
        position = unsafe UnsafeRawPointer(found) - base + 1
      }
      return false
    }
  }
}

/// Records of a topic, and the range that was searched.
public struct RecordPage: Hashable, Sendable {
  /// From the oldest to the newest.
  public var records: [RecordSnapshot] = []
  /// The topic's floor, and the offset of the next record.
  public var firstOffset: UInt64 = 0
  public var nextOffset: UInt64 = 0
  /// The searched range: the page contains the matching records from `from` on and before `through`.
  public var from: UInt64 = 0
  public var through: UInt64 = 0
  /// The number of records searched, and their bytes.
  public var scannedRecords: UInt64 = 0
  public var scannedBytes: Int = 0
  /// Whether the search ended at the query's limit, before the page was full or the end of the topic was reached.
  public var isCut = false

  public init() {}
}
