import SluiceWire

/// A published record: its offset, its time, and its bytes as a slice of the delivered batch.
///
/// A copy of it costs one reference; its parts are copied and decoded when they are read.
///
/// ```swift
/// let words = client.topic("words").sink { completion in
///   print(completion)
/// } receiveValue: { record in
///   print(record.offset, record.string)
/// }
/// ```
public struct TopicRecord: Sendable {
  /// The memory of the record's bytes.
  public let buffer: RecordBuffer
  /// The record's position in the topic, from 0.
  public let offset: UInt64
  /// When the broker accepted it, in milliseconds since 1970.
  @usableFromInline let milliseconds: Int64
  /// The payload's place in the buffer.
  @usableFromInline let payloadStart: UInt32
  @usableFromInline let payloadCount: UInt32
  /// The length of key and headers, which precede the payload; 0 for a record without.
  @usableFromInline let attributesCount: UInt32

  @inlinable
  init(
    buffer: RecordBuffer, offset: UInt64, time: Int64, payloadStart: UInt32, payloadCount: UInt32,
    attributesCount: UInt32
  ) {
    self.buffer = buffer
    self.offset = offset
    milliseconds = time
    self.payloadStart = payloadStart
    self.payloadCount = payloadCount
    self.attributesCount = attributesCount
  }

  /// When the broker accepted it.
  @inlinable
  public var time: Timestamp { Timestamp(millisecondsSince1970: milliseconds) }

  /// The topic's name.
  public var topic: String { buffer.topic }

  /// The length of the payload in bytes.
  @inlinable
  public var count: Int { Int(payloadCount) }

  /// Calls `body` with the payload in place. The bytes are valid during the call only.
  @inlinable
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(buffer) { () throws(Failure) -> Result in
      try unsafe body(
        UnsafeRawBufferPointer(start: buffer.base + Int(payloadStart), count: Int(payloadCount)))
    }
  }

  /// Calls `body` with the record as it is in a batch behind its word: key and headers, if it has any, and the payload. The bytes are valid during the call
  /// only.
  package func withUnsafeBody<Result>(
    _ body: (UnsafeRawBufferPointer, _ isAttributed: Bool) -> Result
  ) -> Result {
    withExtendedLifetime(buffer) {
      let count = Int(attributesCount)
      return unsafe body(
        UnsafeRawBufferPointer(
          start: buffer.base + Int(payloadStart) - count, count: count + Int(payloadCount)), count > 0)
    }
  }

  /// A copy of the payload.
  public var payload: [UInt8] { unsafe withUnsafeBytes { unsafe [UInt8]($0) } }

  /// The payload as text; bytes that aren't UTF-8 become U+FFFD.
  public var string: String { unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }

  /// A copy of the key; nil if the producer gave none, which differs from an empty key.
  public var key: [UInt8]? {
    withAttributes { attributes in unsafe attributes.key.map { unsafe [UInt8]($0) } } ?? nil
  }

  /// The key as text, see ``string``.
  public var keyString: String? {
    withAttributes { attributes in unsafe attributes.key.map { unsafe String(decoding: $0, as: UTF8.self) } }
      ?? nil
  }

  /// The headers in the producer's order, decoded now.
  public var headers: [Message.Header] {
    withAttributes { attributes in
      var headers: [Message.Header] = []
      headers.reserveCapacity(attributes.headerCount)
      unsafe attributes.forEachHeader { name, value in
        unsafe headers.append(Message.Header(String(decoding: name, as: UTF8.self), [UInt8](value)))
      }
      return headers
    } ?? []
  }

  /// Nil for a record without attributes. The batch's check has validated them.
  private func withAttributes<Result>(_ body: (RecordAttributes) -> Result) -> Result? {
    guard attributesCount > 0 else { return nil }
    return withExtendedLifetime(buffer) {
      let bytes = unsafe UnsafeRawBufferPointer(
        start: buffer.base + Int(payloadStart) - Int(attributesCount),
        count: Int(attributesCount) + Int(payloadCount))
      return unsafe (try? RecordAttributes(bytes)).map(body)
    }
  }
}

extension TopicRecord: CustomStringConvertible {
  /// "orders.eu 17: 128 bytes"
  public var description: String { "\(topic) \(offset): \(count) bytes" }
}

/// The memory of one delivered batch, shared by its records and released with the last of them.
///
/// A subscriber that retains one record retains the whole batch; to keep few records, copy their ``TopicRecord/payload``.
// @unchecked: written only while the loop has the only reference; constant from the first delivery on.
@safe
public final class RecordBuffer: @unchecked Sendable {
  @usableFromInline let base: UnsafeMutableRawPointer
  /// Bytes of the batch in use.
  @usableFromInline private(set) var count: Int
  /// The batch's topic.
  @usableFromInline private(set) var topic: String
  /// The commits of a subscription with a durable cursor.
  private(set) var commits: CursorCommits?
  private let capacity: Int

  /// Smaller batches get memory of their own, which is cheap; larger ones reuse the last one's if no record of it is kept, since fresh
  /// pages make large allocations slow.
  private static let reusableSize = 16 << 10

  private init(capacity: Int, topic: String) {
    self.capacity = capacity
    self.topic = topic
    count = 0
    unsafe base = .allocate(byteCount: max(capacity, 1), alignment: 8)
  }

  deinit {
    unsafe base.deallocate()
  }

  /// The size of the buffer's memory, in bytes.
  public var byteCount: Int { capacity }

  /// A buffer with a copy of `batch`.
  ///
  /// - Parameter last: the last large buffer, reused if it has no other reference.
  static func copy(
    _ batch: UnsafeRawBufferPointer, topic: String, commits: CursorCommits? = nil,
    reusing last: inout RecordBuffer?
  ) -> RecordBuffer {
    let isLarge = batch.count >= reusableSize
    let buffer: RecordBuffer
    // A subscriber that keeps a record must not retain much more memory than the batch needs.
    if isLarge, isKnownUniquelyReferenced(&last), let unused = last, batch.count <= unused.capacity,
      unused.capacity / 4 <= batch.count
    {
      buffer = unused
      if buffer.topic != topic { buffer.topic = topic }
      if buffer.commits !== commits { buffer.commits = commits }
    } else {
      buffer = RecordBuffer(capacity: batch.count, topic: topic)
      buffer.commits = commits
      if isLarge { last = buffer }
    }
    buffer.count = batch.count
    if let source = batch.baseAddress { unsafe buffer.base.copyMemory(from: source, byteCount: batch.count) }
    return buffer
  }
}
