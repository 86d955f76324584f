import SluiceStore

/// The bytes under which a table has a value. Numbers in them are big-endian, since LMDB compares them as bytes.
protocol LMDBKey {
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result
}

/// A key as it was found.
extension [UInt8]: LMDBKey {
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe withUnsafeBytes(body)
  }
}

/// A key of `topics` and `garbage`.
struct TopicKey: LMDBKey {
  private let topic: UInt64

  init(_ topic: TopicID) {
    self.topic = topic.rawValue.bigEndian
  }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe withUnsafeBytes(of: topic, body)
  }

  /// Nil for a key of another kind, which only a damaged file has.
  static func topic(_ key: UnsafeRawBufferPointer) -> TopicID? {
    unsafe key.count == 8 ? TopicID(rawValue: key.number(at: 0)) : nil
  }
}

/// A key of `batches`: the topic, and the offset of the batch's first record.
struct BatchKey: LMDBKey {
  private let numbers: (topic: UInt64, offset: UInt64)

  init(_ topic: TopicID, _ offset: UInt64) {
    numbers = (topic.rawValue.bigEndian, offset.bigEndian)
  }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe withUnsafeBytes(of: numbers, body)
  }

  static func topic(_ key: UnsafeRawBufferPointer) -> TopicID? {
    unsafe key.count == 16 ? TopicID(rawValue: key.number(at: 0)) : nil
  }

  /// Nil when it is another topic's.
  static func offset(_ key: UnsafeRawBufferPointer, of topic: TopicID) -> UInt64? {
    unsafe Self.topic(key) == topic ? key.number(at: 8) : nil
  }
}

/// A key of `states`: the topic, the kind, and the state's own key.
struct StateKey: LMDBKey {
  private var bytes: [UInt8] = []

  /// - Parameter kind: Nil for the least key that the topic can have.
  init(_ topic: TopicID, _ kind: StoredState.Kind?, _ key: [UInt8] = []) {
    bytes.reserveCapacity(9 + key.count)
    unsafe withUnsafeBytes(of: topic.rawValue.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    if let kind { bytes.append(kind.rawValue) }
    bytes.append(contentsOf: key)
  }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe bytes.withUnsafeBytes(body)
  }

  static func topic(_ key: UnsafeRawBufferPointer) -> TopicID? {
    unsafe TopicID(rawValue: key.number(at: 0))
  }

  /// Nil when it is another topic's, or of another kind.
  static func key(_ key: UnsafeRawBufferPointer, of topic: TopicID, _ kind: StoredState.Kind) -> [UInt8]? {
    guard key.count > 9, unsafe Self.topic(key) == topic, unsafe key[8] == kind.rawValue else { return nil }
    return unsafe Array(key[9...])
  }
}

/// A key of `meta`.
enum MetaKey: String, LMDBKey {
  /// u32, little-endian: how the tables are laid out.
  case version
  /// u8: 1 when it was closed in order, 0 otherwise.
  case closed
  /// u64, little-endian: the number of the next topic.
  case nextTopic

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    unsafe Array(rawValue.utf8).withUnsafeBytes(body)
  }
}

extension TopicID {
  fileprivate init?(rawValue: UInt64?) {
    guard let rawValue else { return nil }
    self.init(rawValue: rawValue)
  }
}

extension UnsafeRawBufferPointer {
  /// The big-endian number there; nil when it is too short.
  fileprivate func number(at position: Int) -> UInt64? {
    guard position + 8 <= count else { return nil }
    return unsafe UInt64(bigEndian: loadUnaligned(fromByteOffset: position, as: UInt64.self))
  }
}
