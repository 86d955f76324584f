/// The fixed front of a PUBLISH body; a batch (see ``RecordLayout``) fills the rest of the frame.
///
/// ```
/// u64 first sequence · u32 count · batch
/// ```
public struct PublishHeader: Hashable, Sendable {
  /// Of the front, without the frame's header.
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
  @inlinable
  public func write(at bytes: UnsafeMutableRawPointer, stream: UInt32, batchLength: Int) {
    unsafe FrameHeader(length: UInt32(Self.size + batchLength), type: .publish, stream: stream).write(
      at: bytes)
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
