import Glibc
import SluiceWire

/// Which records of a topic to show, and the most work for them.
public struct RecordQuery: Hashable, Sendable {
  /// Where to look.
  public enum Start: Hashable, Sendable {
    /// From a position on, towards newer records.
    case from(Subscribe.Start)
    /// The last ones before an offset; nil for the newest of the topic.
    case before(UInt64?)
  }

  public var start: Start
  /// The key that the records must have; nil for any, and for none.
  public var key: [UInt8]?
  /// Bytes that the records must have in the key, in the payload, or in the name or value of a header; empty for any.
  public var text: [UInt8]
  /// The most records.
  public var count: Int
  /// The most bytes of them in all, keys and headers included; a longer record comes alone.
  public var bytes: Int
  /// About the most bytes of records to look at.
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

  /// Whether some records aren't wanted.
  var isFilter: Bool { key != nil || !text.isEmpty }

  /// Whether a record is wanted.
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

  /// Looks for the first byte, then compares: most bytes of most records are looked at by `memchr` alone.
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

/// Records of a topic, and where they were found.
public struct RecordPage: Hashable, Sendable {
  /// From the oldest to the newest.
  public var records: [RecordSnapshot] = []
  /// The offset of the first record that the topic keeps, and the one that the next record will get.
  public var firstOffset: UInt64 = 0
  public var nextOffset: UInt64 = 0
  /// Every record from `from` on and before `through` was looked at; those that are wanted are in the page.
  public var from: UInt64 = 0
  public var through: UInt64 = 0
  /// Records that were looked at, and their bytes.
  public var scannedRecords: UInt64 = 0
  public var scannedBytes: Int = 0
  /// Whether the query's limit has ended the search before the page was full and the end of the topic was reached.
  public var isCut = false

  public init() {}
}
