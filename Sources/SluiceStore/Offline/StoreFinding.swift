/// An inconsistency in a store.
public struct StoreFinding: Hashable, Sendable {
  /// The kind of damage.
  public enum Problem: Hashable, Sendable {
    /// A batch has fewer bytes than its header and one item.
    case batchTooShort(bytes: Int)
    /// A batch isn't what was stored.
    case batchChecksum
    /// A batch's header has another first offset than the key under which it is stored.
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
    /// A batch's count of bytes before it disagrees with the batch in front of it.
    case bytesBefore(says: UInt64, has: UInt64)
    /// A batch is older than the one in front of it: the broker's clock was set back in between.
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
    /// An earlier version stored the name in a spelling that isn't a name any more: clients reach the topic under the composed one.
    case spelling
    /// A later topic has the same name: this one was deleted, and a crash came in between. The broker removes it when it starts.
    case superseded(by: TopicID)
    /// The key of a small state can't be read.
    case state(key: [UInt8], String)
    /// Batches or states belong to no topic.
    case strays
    /// The next topic would get a number that was assigned already.
    case nextTopic(says: TopicID)
  }

  public enum ExtentField: String, Hashable, Sendable {
    case firstOffset = "first offset"
    case head = "next offset"
    case bytesBefore = "bytes before the first record"
    case bytesThrough = "bytes up to the next record"
  }

  public var topic: TopicID
  /// Nil when it isn't known.
  public var name: String?
  public var problem: Problem
  /// The offset under which a batch is stored, for problems of one.
  public var batch: UInt64?
  /// The records that are lost by it.
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

  /// False for findings that need no repair: records that were removed, times that go back, topics that were replaced, and spellings of names.
  public var isDamage: Bool {
    switch problem {
    case .gap, .timeGoesBack, .superseded, .spelling: false
    default: true
    }
  }

  /// Damage that ``StoreRepair`` leaves unchanged, since no record is lost.
  public var isLeftByRepair: Bool {
    switch problem {
    case .rowIsNewer, .bytesBefore: true
    default: false
    }
  }
}

extension StoreFinding: CustomStringConvertible {
  /// The place, the problem and the lost records, in a line.
  public var description: String {
    var text = name.map { "topic \($0)" } ?? "topic number \(topic.rawValue)"
    if let batch { text += ", batch at offset \(batch)" }
    text += ": \(problem)"
    if let missing, !missing.isEmpty { text += "; \(Self.records(missing)) missing" }
    return text
  }

  private static func records(_ range: Range<UInt64>) -> String {
    range.upperBound - range.lowerBound == 1
      ? "record \(range.lowerBound) is"
      : "records \(range.lowerBound) to \(range.upperBound - 1) are"
  }
}

extension StoreFinding.Problem: CustomStringConvertible {
  public var description: String { words.text }

  /// A word for programs.
  public var code: String { words.code }

  private var words: (code: String, text: String) {
    switch self {
    case .batchTooShort(let bytes): ("batch-too-short", "its \(bytes) bytes can't hold a record")
    case .batchChecksum: ("batch-checksum", "its checksum is wrong")
    case .batchMisplaced(let says): ("batch-misplaced", "it says that it begins at \(says)")
    case .batchItems(let why): ("batch-items", why)
    case .batchRecords(let says, let has):
      ("batch-records", "it says that it has \(says) records, and has \(has)")
    case .batchBytes(let says, let has):
      ("batch-bytes", "it says that its records have \(says) bytes, and they have \(has)")
    case .batchTimes(let why): ("batch-times", why)
    case .batchOverlap(let end):
      ("batch-overlap", "it begins before \(end), where the one in front of it ends")
    case .bytesBefore(let says, let has):
      ("bytes-before", "it says that there are \(says) bytes of records before it, and there are \(has)")
    case .timeGoesBack(let from, let to):
      ("time-goes-back", "its first record is of \(to), after one of \(from): the clock was set back")
    case .gap: ("gap", "a gap")
    case .extentUnreadable: ("extent-unreadable", "which records it has can't be read")
    case .extent(let field, let says, let has):
      ("extent", "it says that its \(field.rawValue) is \(says), where its batches say \(has)")
    case .extentTime(let says, let has):
      ("extent", "it says that its last record is of \(says), where its batches say \(has)")
    case .row(let why): ("row", why)
    case .rowIsNewer(let why): ("row-is-newer", why)
    case .name(let why): ("name", why)
    case .spelling:
      (
        "spelling",
        "its name isn't in Unicode's Normalization Form C; clients reach it under the composed name"
      )
    case .superseded(let other):
      ("superseded", "it was deleted, and topic number \(other.rawValue) has its name now")
    case .state(let key, let why): ("state", "state \(Self.hexadecimal(key)): \(why)")
    case .strays: ("strays", "there are batches or states, and no topic")
    case .nextTopic(let says): ("next-topic", "the next topic would get number \(says.rawValue)")
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = bytes.prefix(32).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return bytes.count > 32 ? digits + "…" : digits
  }
}
