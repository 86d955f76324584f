/// The fixed front of a PUBLISH body; a batch (see ``RecordLayout``) fills the rest of the frame.
///
/// ```
/// u64 first sequence · u32 count · batch
/// ```
public struct PublishHeader: Hashable, Sendable {
  /// The size of the front, without the frame's header.
  public static let size = 12

  /// How many records were published on this stream before this batch.
  public var firstSequence: UInt64
  /// Records in the batch, at least 1.
  public var count: UInt32

  @inlinable
  public init(firstSequence: UInt64, count: UInt32) {
    self.firstSequence = firstSequence
    self.count = count
  }

  /// Writes the frame's header and the front, 24 bytes, for a batch of `batchLength` bytes.
  ///
  /// A producer that doesn't wait for the batch's acknowledgement sets ``StreamFlag/unhurried`` in `flags`.
  @inlinable
  public func write(
    at bytes: UnsafeMutableRawPointer, stream: UInt32, batchLength: Int, flags: UInt8 = 0
  ) {
    unsafe FrameHeader(
      length: UInt32(Self.size + batchLength), type: .publish, flags: flags, stream: stream
    ).write(at: bytes)
    unsafe bytes.storeBytes(of: firstSequence.littleEndian, toByteOffset: FrameHeader.size, as: UInt64.self)
    unsafe bytes.storeBytes(of: count.littleEndian, toByteOffset: FrameHeader.size + 8, as: UInt32.self)
  }

  /// Reads the front of a body and gives the batch behind it.
  @inlinable
  public static func decode(
    _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> (header: PublishHeader, batch: UnsafeRawBufferPointer) {
    var reader = unsafe ByteReader(body)
    let firstSequence: UInt64 = try reader.integer("PUBLISH first sequence")
    let count: UInt32 = try reader.integer("PUBLISH count")
    return unsafe (PublishHeader(firstSequence: firstSequence, count: count), reader.remaining)
  }
}

/// The fixed front of a DELIVER body; a batch (see ``RecordLayout``) fills the rest of the frame.
///
/// Not a ``Frame``: the broker writes the 24 bytes of header and front beside a slice of its log, and neither side ever holds
/// the whole as a value.
///
/// ```
/// u64 first offset · u32 count · batch
/// ```
public struct DeliverHeader: Hashable, Sendable {
  /// The size of the front, without the frame's header.
  public static let size = 12

  /// The offset of the first record; the others follow without a gap.
  public var firstOffset: UInt64
  /// Records in the batch, time marks not counted; at least 1.
  public var count: UInt32

  @inlinable
  public init(firstOffset: UInt64, count: UInt32) {
    self.firstOffset = firstOffset
    self.count = count
  }

  /// Writes the frame's header and the front, 24 bytes, for a batch of `batchLength` bytes.
  @inlinable
  public func write(at bytes: UnsafeMutableRawPointer, stream: UInt32, batchLength: Int) {
    unsafe FrameHeader(length: UInt32(Self.size + batchLength), type: .deliver, stream: stream).write(
      at: bytes)
    unsafe bytes.storeBytes(of: firstOffset.littleEndian, toByteOffset: FrameHeader.size, as: UInt64.self)
    unsafe bytes.storeBytes(of: count.littleEndian, toByteOffset: FrameHeader.size + 8, as: UInt32.self)
  }

  /// Reads the front of a body and gives the batch behind it.
  ///
  /// Its result has at least one record, and its last offset fits into a `UInt64`; ``BatchIterator`` verifies the number of
  /// records.
  @inlinable
  public static func decode(
    _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> (header: DeliverHeader, batch: UnsafeRawBufferPointer) {
    var reader = unsafe ByteReader(body)
    let firstOffset: UInt64 = try reader.integer("DELIVER first offset")
    let count: UInt32 = try reader.integer("DELIVER count")
    guard count > 0, !firstOffset.addingReportingOverflow(UInt64(count)).overflow else {
      throw WireError(.malformedFrame, "DELIVER announces \(count) records from offset \(firstOffset)")
    }
    return unsafe (DeliverHeader(firstOffset: firstOffset, count: count), reader.remaining)
  }
}
