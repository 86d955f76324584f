/// Which of a topic's records are stored. The store itself keeps account of it.
public struct StoredExtent: Hashable, Sendable {
  /// The offset of the first record of the oldest batch; the head when there is none.
  public var firstOffset: UInt64 = 0
  /// The offset that the next record gets.
  public var head: UInt64 = 0
  /// Bytes of records before the first, since the topic began; time marks aren't counted.
  public var bytesBefore: UInt64 = 0
  /// The same before the head.
  public var bytesThrough: UInt64 = 0
  /// The time of the last record; the least there is before the first one.
  public var lastTime: Int64 = .min

  public init() {}

  /// Bytes of the records that are stored.
  public var bytes: UInt64 { bytesThrough - bytesBefore }

  /// A topic begins where its first batch does.
  package mutating func beginIfNew(with batch: BatchBlock) {
    guard head == 0, let base = unsafe batch.value.baseAddress else { return }
    firstOffset = batch.firstOffset
    head = batch.firstOffset
    bytesBefore = unsafe BatchHeader(at: base).bytesBefore
  }
}
