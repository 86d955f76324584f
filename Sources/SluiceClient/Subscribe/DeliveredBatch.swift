import ReactiveCore
import SluiceWire

/// The records of a DELIVER that weren't delivered to their subscriber yet.
///
/// ``check(_:count:)`` has validated the bytes, which are read without further checks.
@usableFromInline
struct DeliveredBatch {
  @usableFromInline let buffer: RecordBuffer
  /// Records left.
  @usableFromInline var count: Int
  @usableFromInline var position = 0
  @usableFromInline var offset: UInt64
  /// The last time mark before the next record.
  @usableFromInline var time: Int64
  /// The delivery's data for a group member.
  let origin: Origin

  /// The number of the records' delivery, and the epoch of their topic.
  struct Origin {
    var delivery: UInt32 = 1
    var epoch: UInt64 = 0
  }

  init(_ buffer: RecordBuffer, count: Int, firstOffset: UInt64, time: Int64, origin: Origin = Origin()) {
    self.buffer = buffer
    self.count = count
    offset = firstOffset
    self.time = time
    self.origin = origin
  }

  /// Delivers at most `limit` records, until `subscription` is cancelled. Returns the sum of the demands that `receive` returns.
  ///
  /// The loop is inlined into the subscriber's module, where `receive` is known.
  @inlinable
  @inline(__always)
  mutating func deliver(
    atMost limit: Int, unlessCancelled subscription: RemoteSubscription,
    to receive: (TopicRecord) -> Subscribers.Demand
  ) -> Subscribers.Demand {
    var asked = Subscribers.Demand.none
    var left = min(limit, count)
    // A local reference, which all records borrow.
    let buffer = buffer
    let base = unsafe UnsafeRawPointer(buffer.base)
    while left > 0, !subscription.isCancelled {
      let word = unsafe RecordLayout.word(at: base + position)
      let length = RecordLayout.length(word)
      let body = position + RecordLayout.wordSize
      position = body + length
      var attributes = 0
      if word >= DeliveredBatch.firstUncommon {
        guard RecordLayout.isRecord(word) else {
          time = unsafe Int64(littleEndian: (base + body).loadUnaligned(as: Int64.self))
          continue
        }
        attributes = unsafe DeliveredBatch.attributesCount(base + body, length)
      }
      let record = TopicRecord(
        buffer: buffer, offset: offset, time: time,
        payloadStart: UInt32(truncatingIfNeeded: body + attributes),
        payloadCount: UInt32(truncatingIfNeeded: length - attributes),
        attributesCount: UInt32(truncatingIfNeeded: attributes))
      left -= 1
      count -= 1
      offset &+= 1
      asked += receive(record)
    }
    return asked
  }

  /// The lowest word of an item that isn't a plain record.
  @usableFromInline static var firstUncommon: UInt32 { 0x4000_0000 }

  /// The length of an attributed record's key and headers, which precede its payload.
  @usableFromInline
  static func attributesCount(_ body: UnsafeRawPointer, _ length: Int) -> Int {
    guard let attributes = try? unsafe RecordAttributes(UnsafeRawBufferPointer(start: body, count: length))
    else {
      return 0
    }
    return unsafe length - attributes.payload.count
  }
}

extension DeliveredBatch {
  /// Checks that `batch` has `count` records and only defined items. Returns the time of its last mark, if any.
  ///
  /// - Throws: ``ErrorCode/malformedBatch``.
  static func check(_ batch: UnsafeRawBufferPointer, count: UInt32) throws(WireError) -> Int64? {
    var time: Int64?
    var records: UInt32 = 0
    var position = 0
    let end = batch.count
    guard let base = batch.baseAddress else {
      throw WireError(.malformedBatch, "a batch announces \(count) records and is empty")
    }
    while end &- position >= RecordLayout.wordSize {
      let word = unsafe RecordLayout.word(at: base + position)
      let length = RecordLayout.length(word)
      guard word < firstUncommon else {
        guard length <= end - position - RecordLayout.wordSize else { break }
        let body = unsafe UnsafeRawBufferPointer(
          start: base + position + RecordLayout.wordSize, count: length)
        if let mark = try unsafe checkUncommon(RecordLayout.kind(word), body) {
          time = mark
        } else {
          records &+= 1
        }
        position &+= RecordLayout.wordSize &+ length
        continue
      }
      // For records of one length the next position doesn't depend on a load, which the processor can run ahead of.
      let size = RecordLayout.wordSize &+ length
      repeat {
        position &+= size
        records &+= 1
      } while unsafe end &- position >= RecordLayout.wordSize
        && RecordLayout.word(at: base + position) == word
    }
    guard position == end else {
      throw WireError(.malformedBatch, "a batch is cut short within record \(records) of it")
    }
    guard records == count else {
      throw WireError(.malformedBatch, "a batch announces \(count) records and has \(records)")
    }
    return time
  }

  /// Returns the time of a mark, nil for a record.
  @inline(never)
  private static func checkUncommon(
    _ kind: RecordLayout.Kind, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> Int64? {
    switch kind {
    case .plain: return nil
    case .attributed:
      _ = try unsafe RecordAttributes(body)
      return nil
    case .timeMark:
      guard body.count == 8 else {
        throw WireError(.malformedBatch, "a time mark has \(body.count) bytes instead of 8")
      }
      return unsafe Int64(littleEndian: body.loadUnaligned(as: Int64.self))
    case .reserved:
      throw WireError(.malformedBatch, "an item has kind 3, which isn't defined")
    }
  }
}
