/// Something in a store that isn't as it should be.
public struct StoreFinding: Hashable, Sendable {
  /// What is wrong.
  public enum Problem: Hashable, Sendable {
    /// A batch has fewer bytes than its header and one item.
    case batchTooShort(bytes: Int)
    /// A batch isn't what was stored.
    case batchChecksum
    /// A batch says that it begins elsewhere.
    case batchMisplaced(says: UInt64)
    /// Items of a batch aren't records and time marks.
    case batchItems(String)
    /// A batch has another number of records than its header says.
    case batchRecords(says: UInt32, has: UInt64)
    /// A batch has another number of bytes in records than its header says.
    case batchBytes(says: UInt32, has: UInt64)
    /// The times within a batch aren't in order, or not those that its header says.
    case batchTimes(String)
    /// A batch begins before the one in front of it ends.
    case batchOverlap(end: UInt64)
    /// A batch counts the bytes before it otherwise than the one in front of it does.
    case bytesBefore(says: UInt64, has: UInt64)
    /// A batch is older than the one in front of it.
    case timeGoesBack(from: Int64, to: Int64)
    /// Records are missing between batches, or behind the last: a repair has taken them away.
    case gap
    /// There is no extent that can be read.
    case extentUnreadable
    /// A number in the extent isn't what the batches say.
    case extent(ExtentField, says: UInt64, has: UInt64)
    /// The time of the last record isn't what the batches say.
    case extentTime(says: Int64, has: Int64)
    /// The topic's row can't be read.
    case row(String)
    /// A later version of this software wrote the topic's row.
    case rowIsNewer(String)
    /// No topic can have this name.
    case name(String)
    /// A later topic has the same name: this one was deleted, and a crash came in between. The broker removes it when it starts.
    case superseded(by: TopicID)
    /// The key of a small state can't be read.
    case state(key: [UInt8], String)
    /// There are batches or states under a number that no topic has.
    case strays
    /// The next topic would get a number that was given already.
    case nextTopic(says: TopicID)
  }

  public enum ExtentField: String, Hashable, Sendable {
    case firstOffset = "first offset"
    case head = "next offset"
    case bytesBefore = "bytes before the first record"
    case bytesThrough = "bytes up to the next record"
  }

  public var topic: TopicID
  /// Nil when it can't be told.
  public var name: String?
  public var problem: Problem
  /// The offset under which a batch is stored, for problems of one.
  public var batch: UInt64?
  /// The records that can't be had for it.
  public var missing: Range<UInt64>?

  public init(
    _ problem: Problem, topic: TopicID, name: String?, batch: UInt64? = nil, missing: Range<UInt64>? = nil
  ) {
    self.problem = problem
    self.topic = topic
    self.name = name
    self.batch = batch
    self.missing = missing
  }

  /// False for what is known and needs no help: records that were taken away, and topics that others have replaced.
  public var isDamage: Bool {
    switch problem {
    case .gap, .superseded: false
    default: true
    }
  }

  /// That ``StoreRepair`` does nothing about it, though it is damage: the records are all there.
  public var isLeftByRepair: Bool {
    switch problem {
    case .rowIsNewer, .bytesBefore, .timeGoesBack: true
    default: false
    }
  }
}

extension StoreFinding.Problem {
  /// Whether the records of a batch with that problem can't be used.
  var spoilsBatch: Bool {
    switch self {
    case .batchTooShort, .batchChecksum, .batchMisplaced, .batchItems, .batchRecords, .batchBytes,
      .batchTimes, .batchOverlap:
      true
    default: false
    }
  }
}
