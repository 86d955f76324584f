/// The memory of one delivered batch, shared by its records and released with the last of them.
///
/// A subscriber that keeps one record of a batch keeps the whole batch; to keep little of much, copy the
/// ``TopicRecord/payload``.
// @unchecked: written only while one owner, the loop, has the only reference; constant from the first delivery on.
@safe
public final class RecordBuffer: @unchecked Sendable {
  @usableFromInline let base: UnsafeMutableRawPointer
  /// Bytes of the batch in use.
  @usableFromInline private(set) var count: Int
  /// The topic that the batch is of.
  @usableFromInline private(set) var topic: String
  /// Of a subscription with a durable cursor whose records are committed by hand.
  private(set) var commits: CursorCommits?
  private let capacity: Int

  /// Batches below this size get memory of just their size, which costs next to nothing; larger ones use the last one's
  /// again if nobody kept it, since fresh pages are what is slow about large memory.
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

  /// What the buffer's memory takes, in bytes.
  public var byteCount: Int { capacity }

  /// A buffer with a copy of `batch`.
  ///
  /// - Parameter last: the last large one, to be used again if nobody else has it any more.
  static func copy(
    _ batch: UnsafeRawBufferPointer, topic: String, commits: CursorCommits? = nil,
    reusing last: inout RecordBuffer?
  ) -> RecordBuffer {
    let isLarge = batch.count >= reusableSize
    let buffer: RecordBuffer
    // Somebody who keeps a record must not keep much more memory than the batch needs.
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
