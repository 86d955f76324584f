/// CURSOR_LIST: asks for a topic's durable cursors and groups, a page at a time. Answered by ``Cursors`` or ``Fault`` on the same stream.
///
/// ```
/// string topic · string after · u32 limit
/// ```
public struct CursorList: Frame {
  public static let type = FrameType.cursorList

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String
  /// Only cursors whose names come after this one in byte order; empty for the first page.
  public var after: String
  /// At most so many; the broker may send fewer.
  public var limit: UInt32

  public init(topic: String, after: String = "", limit: UInt32) {
    self.topic = topic
    self.after = after
    self.limit = limit
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.string(after)
    writer.integer(limit)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("CURSOR_LIST topic")
    after = try reader.string("CURSOR_LIST after")
    limit = try reader.integer("CURSOR_LIST limit")
  }
}

/// CURSORS: a page of a topic's durable cursors and groups in byte order of their names. Answers ``CursorList``.
///
/// ```
/// u8 more (0 or 1) · list of cursors
/// ```
public struct Cursors: Frame {
  public static let type = FrameType.cursors

  /// True when there are cursors after the last of this page.
  public var more: Bool
  public var cursors: [CursorInfo]

  public init(cursors: [CursorInfo], more: Bool) {
    self.cursors = cursors
    self.more = more
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(more ? 1 : 0 as UInt8)
    writer.list(cursors) { $0.encode(into: &$1) }
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    more = try reader.integer("CURSORS more", as: UInt8.self) != 0
    cursors = try reader.list("cursor") { reader throws(WireError) in try CursorInfo(from: &reader) }
  }
}

/// A durable cursor, or a group, in a few numbers.
///
/// ```
/// string name · u8 kind · u64 epoch · u64 next offset · u64 end · u32 members · u64 outstanding · u64 idle
/// ```
public struct CursorInfo: Hashable, Sendable {
  /// The number is the one on the wire.
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    case cursor = 0
    case group = 1
  }

  public var name: String
  public var kind: Kind
  /// The topic's epoch to which the cursor's offset refers.
  public var epoch: UInt64
  /// That of the first record which isn't committed, or done with.
  public var nextOffset: UInt64
  /// The offset that the topic's next record will get.
  public var end: UInt64
  /// Subscriptions that use it at the moment.
  public var members: UInt32
  /// Records that are with members of a group, neither done nor refused.
  public var outstanding: UInt64
  /// For how long no client has used it, in milliseconds; 0 while one does.
  public var idle: UInt64

  public init(
    name: String, kind: Kind, epoch: UInt64, nextOffset: UInt64, end: UInt64, members: UInt32,
    outstanding: UInt64, idle: UInt64
  ) {
    self.name = name
    self.kind = kind
    self.epoch = epoch
    self.nextOffset = nextOffset
    self.end = end
    self.members = members
    self.outstanding = outstanding
    self.idle = idle
  }

  func encode(into writer: inout ByteWriter) {
    writer.string(name)
    writer.integer(kind.rawValue)
    writer.integer(epoch)
    writer.integer(nextOffset)
    writer.integer(end)
    writer.integer(members)
    writer.integer(outstanding)
    writer.integer(idle)
  }

  init(from reader: inout ByteReader) throws(WireError) {
    name = try reader.string("cursor's name")
    let kind: UInt8 = try reader.integer("cursor's kind")
    epoch = try reader.integer("cursor's epoch")
    nextOffset = try reader.integer("cursor's next offset")
    end = try reader.integer("cursor's end")
    members = try reader.integer("cursor's members")
    outstanding = try reader.integer("cursor's outstanding")
    idle = try reader.integer("cursor's idle")
    guard let kind = Kind(rawValue: kind) else {
      throw WireError(.malformedFrame, "a cursor has kind \(kind); 0 and 1 are defined")
    }
    self.kind = kind
  }
}
