import SluiceStore
import SluiceWire

/// The first bytes of every message in a shard's stream, little-endian:
///
/// ```
/// 0 u8 version 1 · 1 u8 kind · 2 u16 part · 4 u16 parts · 6 u16 zero · 8 u64 fence · 16 u64 commit · 24 body
/// ```
///
/// A message counts only if ``fence`` is the sequence of the last valid fence message before it. This voids the commits of a former owner, and those that an
/// owner sent over its own former connection; an expected last sequence alone doesn't. With several commits in progress, each expects the sequence that the
/// previous one will have. If another message takes that sequence, the first commit is refused; the second one, which expects exactly the sequence of that
/// other message, is stored.
struct EngineEnvelope: Hashable, Sendable {
  enum Kind: UInt8, Sendable {
    /// An owner opens the shard, raises a barrier, or closes it: see ``EngineFence``.
    case fence = 1
    /// A part of a ``TopicChange``.
    case change = 2
    /// A part of a topic's state except its batches: see ``TopicCheckpoint``.
    case checkpoint = 3
    /// States that every topic has a checkpoint that includes all changes before it: see ``EngineFront``.
    case front = 4
  }

  static let size = 24
  private static let version: UInt8 = 1
  /// The most parts of one body.
  static let mostParts = 1_000

  var kind: Kind
  /// From 0.
  var part = 0
  var parts = 1
  /// The sequence of the fence message under which this one was sent; 0 in a fence message.
  var fence: UInt64
  /// The number of the commit to which the message belongs, from 1 each time an owner opens the shard; 0 in other messages.
  var commit: UInt64 = 0

  init(_ kind: Kind, fence: UInt64, commit: UInt64 = 0, part: Int = 0, parts: Int = 1) {
    self.kind = kind
    self.fence = fence
    self.commit = commit
    self.part = part
    self.parts = parts
  }

  /// Begins a message.
  ///
  /// - Parameter body: the number of bytes that follow.
  func writer(reserving body: Int = 0) -> ByteWriter {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.size + body)
    var writer = ByteWriter(bytes)
    writer.integer(Self.version)
    writer.integer(kind.rawValue)
    writer.integer(UInt16(part))
    writer.integer(UInt16(parts))
    writer.integer(UInt16(0))
    writer.integer(fence)
    writer.integer(commit)
    return writer
  }

  /// Reads the first bytes of a message.
  ///
  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for a version that this software doesn't support.
  init(_ reader: inout ByteReader) throws(StoreError) {
    do throws(WireError) {
      let version: UInt8 = try reader.integer("version")
      guard version == Self.version else {
        throw WireError(.unsupported, "it has version \(version), and this software knows \(Self.version)")
      }
      let number: UInt8 = try reader.integer("kind")
      guard let kind = Kind(rawValue: number) else {
        throw WireError(.unsupported, "it is of kind \(number), which this software doesn't know")
      }
      let part = Int(try reader.integer("part", as: UInt16.self))
      let parts = Int(try reader.integer("parts", as: UInt16.self))
      guard part < parts, parts <= Self.mostParts else {
        throw WireError(.malformedFrame, "it is part \(part) of \(parts)")
      }
      _ = try reader.integer("zero", as: UInt16.self)
      let fence: UInt64 = try reader.integer("fence")
      self.init(kind, fence: fence, commit: try reader.integer("commit"), part: part, parts: parts)
    } catch {
      throw Self.unreadable(error)
    }
  }

  /// The store's error for a malformed message.
  static func unreadable(_ error: WireError) -> StoreError {
    StoreError(
      error.code == .unsupported ? .newer : .damaged,
      "a message of the shard's stream can't be read: \(error.message)")
  }
}

/// The body of a fence message, after which commits of earlier fences don't count.
///
///     u64 term · u64 opener · u8 what
struct EngineFence: Hashable, Sendable {
  enum What: UInt8, Sendable {
    /// An owner opens the shard.
    case opened = 1
    /// An owner doesn't know what was stored, and voids commits that may be in progress.
    case barrier = 2
    /// An owner has stored all commits, and stops.
    case closed = 3
  }

  /// The number of the owner's lease.
  var term: UInt64
  /// A random number of the opening that wrote it, by which the owner recognises its own fence.
  var opener: UInt64
  var what: What

  func message() -> [UInt8] {
    var writer = EngineEnvelope(.fence, fence: 0).writer(reserving: 17)
    writer.integer(term)
    writer.integer(opener)
    writer.integer(what.rawValue)
    return writer.bytes
  }

  /// - Parameter reader: positioned after the envelope.
  init(_ reader: inout ByteReader) throws(StoreError) {
    do throws(WireError) {
      term = try reader.integer("term")
      opener = try reader.integer("opener")
      let number: UInt8 = try reader.integer("what")
      guard let what = What(rawValue: number) else {
        throw WireError(.unsupported, "it is a fence of kind \(number), which this software doesn't know")
      }
      self.what = what
    } catch {
      throw EngineEnvelope.unreadable(error)
    }
  }

  init(term: UInt64, opener: UInt64, _ what: What) {
    self.term = term
    self.opener = opener
    self.what = what
  }
}

/// The body of a front message: topics changed before it have a checkpoint, so opening only reads later changes.
///
///     u64 next topic
struct EngineFront: Hashable, Sendable {
  /// Larger than every earlier topic's number.
  var nextTopic: TopicID

  func message(fence: UInt64) -> [UInt8] {
    var writer = EngineEnvelope(.front, fence: fence).writer(reserving: 8)
    writer.integer(nextTopic.rawValue)
    return writer.bytes
  }

  init(nextTopic: TopicID) {
    self.nextTopic = nextTopic
  }

  /// - Parameter reader: positioned after the envelope.
  init(_ reader: inout ByteReader) throws(StoreError) {
    do throws(WireError) {
      nextTopic = TopicID(rawValue: try reader.integer("next topic"))
    } catch {
      throw EngineEnvelope.unreadable(error)
    }
  }
}

/// The valid fences of a stream by sequence, which decide which messages count.
struct FenceTable: Sendable {
  private(set) var fences: [(sequence: UInt64, fence: EngineFence)] = []
  /// For each fence, the sequence of the first later message that was sent under another one.
  private var breaks: [UInt64: UInt64] = [:]
  /// A fault planted by a test: see ``EngineFlaw/noFence``.
  var countsEverything = false

  var last: (sequence: UInt64, fence: EngineFence)? { fences.last }

  /// Adds the next fence message of the stream. A fence with a lower term than an earlier one doesn't count: its writer was overtaken.
  mutating func take(_ fence: EngineFence, at sequence: UInt64) {
    if let last, last.sequence >= sequence { return }
    // It lies among the owner's changes like a change of a former owner: see ``note(_:under:)``.
    if let last, last.fence.term > fence.term { return note(sequence, under: 0) }
    fences.append((sequence, fence))
  }

  /// Notes a change, before ``counts(_:under:)`` is called for it or a later one.
  ///
  /// A former owner predicts the sequences of its messages, and may predict the sequence of the present owner's fence: one of its changes is then stored
  /// behind that fence. It doesn't count. But the present owner's next changes don't get the sequences that they expect either, and one that was sent ahead
  /// may get its sequence by chance although those before it are refused. Therefore no message behind such a change counts up to the next fence, which the
  /// owner writes because its change was refused.
  mutating func note(_ sequence: UInt64, under fence: UInt64) {
    guard let present = fences.last(where: { $0.sequence < sequence })?.sequence, present != fence else {
      return
    }
    breaks[present] = min(breaks[present] ?? .max, sequence)
  }

  /// Whether a message at that sequence counts that was sent under the fence at `fence`.
  func counts(_ sequence: UInt64, under fence: UInt64) -> Bool {
    if countsEverything { return true }
    if let end = breaks[fence], sequence > end { return false }
    var (low, high) = (0, fences.count)
    while low < high {
      let middle = (low + high) / 2
      if fences[middle].sequence < sequence { low = middle + 1 } else { high = middle }
    }
    return low > 0 && fences[low - 1].sequence == fence
  }

  /// Removes fences under which no message from that sequence on was sent.
  mutating func drop(before sequence: UInt64) {
    while fences.count > 1, fences[1].sequence < sequence { fences.removeFirst() }
  }
}
