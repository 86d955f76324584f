/// Walks the records of a batch in place, keeping count of their times.
///
/// Checks what a receiver must: a batch of a peer that lies ends the walk with an error, never with a read outside it. Valid only
/// as long as the memory it was made from.
@safe
public struct BatchIterator {
  /// A record in place.
  @safe
  public struct Record {
    /// Milliseconds since 1970.
    public let time: Int64
    /// The payload of a plain record, the whole body of an attributed one, for ``RecordAttributes``.
    public let body: UnsafeRawBufferPointer
    public let isAttributed: Bool

    @inlinable
    init(time: Int64, body: UnsafeRawBufferPointer, isAttributed: Bool) {
      self.time = time
      unsafe self.body = unsafe body
      self.isAttributed = isAttributed
    }
  }

  @usableFromInline var lastTime: Int64
  @usableFromInline var position: UnsafeRawPointer
  @usableFromInline let end: UnsafeRawPointer
  /// Records that may still come.
  @usableFromInline var missing: Int
  @usableFromInline let count: UInt32?

  /// - Parameters:
  ///   - batch: what to walk, which must stay as it is for as long as this is used.
  ///   - count: the number of records that the frame announced, for the walk to check; nil if it announced none.
  ///   - time: that of the last mark before this batch on the same stream.
  @inlinable
  public init(_ batch: UnsafeRawBufferPointer, count: UInt32? = nil, time: Int64) {
    lastTime = time
    // An empty buffer may have any address: it is never read.
    unsafe position = unsafe batch.baseAddress ?? UnsafeRawPointer(bitPattern: 1)!
    unsafe end = unsafe position + batch.count
    missing = count.map { Int($0) } ?? .max
    self.count = count
  }

  /// The time of the last mark, for the batch that follows on the same stream.
  @inlinable
  public var time: Int64 { lastTime }

  /// The rest of the batch.
  @inlinable
  public var rest: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: position, count: end - position)
  }

  /// The next record, or nil at the end of the batch.
  ///
  /// - Throws: ``ErrorCode/malformedBatch`` for an item that is cut short or of an unknown kind, a record more than announced, or, at
  ///   the end, fewer. The records before were in order.
  @inlinable
  public mutating func next() throws(WireError) -> Record? {
    while unsafe end - position >= RecordLayout.wordSize {
      let word = unsafe RecordLayout.word(at: position)
      let length = RecordLayout.length(word)
      let body = unsafe position + RecordLayout.wordSize
      guard unsafe length <= end - body else { throw unsafe cutShort(length, available: end - body) }
      unsafe position = unsafe body + length
      guard RecordLayout.isRecord(word) else {
        try unsafe mark(word, body)
        continue
      }
      guard missing > 0 else { throw miscounted("more") }
      missing &-= 1
      return unsafe Record(
        time: lastTime, body: UnsafeRawBufferPointer(start: body, count: length),
        isAttributed: RecordLayout.kind(word) == .attributed)
    }
    try checkEnd()
    return nil
  }

  @usableFromInline
  mutating func mark(_ word: UInt32, _ body: UnsafeRawPointer) throws(WireError) {
    guard RecordLayout.kind(word) == .timeMark else {
      throw WireError(.malformedBatch, "an item has kind 3, which isn't defined")
    }
    guard RecordLayout.length(word) == 8 else {
      throw WireError(.malformedBatch, "a time mark has \(RecordLayout.length(word)) bytes instead of 8")
    }
    lastTime = unsafe Int64(littleEndian: body.loadUnaligned(as: Int64.self))
  }

  @usableFromInline
  func checkEnd() throws(WireError) {
    guard unsafe position == end else {
      throw WireError(
        .malformedBatch, unsafe "\(end - position) bytes are left where an item needs at least 4")
    }
    if count != nil, missing > 0 { throw miscounted("fewer") }
  }

  @usableFromInline
  func cutShort(_ length: Int, available: Int) -> WireError {
    WireError(.malformedBatch, "an item announces \(length) bytes where \(available) are left")
  }

  @usableFromInline
  func miscounted(_ how: String) -> WireError {
    WireError(.malformedBatch, "the batch announces \(count ?? 0) records and has \(how)")
  }
}
