/// CURSOR_MOVE: puts a durable cursor, or a group, elsewhere in its topic. Answered by ``Done``, or ``Fault`` on the same stream.
///
/// ```
/// string topic · string name · u8 start · 3 × u8 0 · u64 start value
/// ```
///
/// The cursor is created if there is none. A subscription that uses it ends with ``ErrorCode/cursorMoved``, and so does every member of a group.
public struct CursorMove: Frame {
  public static let type = FrameType.cursorMove

  public var names: [FrameName] { [FrameName(.topic, topic), FrameName(.cursor, name)] }

  public var topic: String
  public var name: String
  public var start: Subscribe.Start

  public init(topic: String, name: String, to start: Subscribe.Start) {
    self.topic = topic
    self.name = name
    self.start = start
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.string(name)
    writer.integer(start.number)
    for _ in 0..<3 { writer.integer(UInt8(0)) }
    writer.integer(start.value)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("CURSOR_MOVE topic")
    name = try reader.string("CURSOR_MOVE name")
    let start: UInt8 = try reader.integer("CURSOR_MOVE start")
    _ = try unsafe reader.bytes("CURSOR_MOVE reserved", count: 3)
    self.start = try Subscribe.Start(
      number: start, value: try reader.integer("CURSOR_MOVE start value", as: UInt64.self))
  }
}

/// CURSOR_DELETE: forgets a durable cursor or a group. Answered by ``Done``, or ``Fault`` on the same stream.
///
/// ```
/// string topic · string name
/// ```
///
/// A subscription that uses it ends with ``ErrorCode/cursorDeleted``.
public struct CursorDelete: Frame {
  public static let type = FrameType.cursorDelete

  public var names: [FrameName] { [FrameName(.topic, topic), FrameName(.cursor, name)] }

  public var topic: String
  public var name: String

  public init(topic: String, name: String) {
    self.topic = topic
    self.name = name
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.string(name)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("CURSOR_DELETE topic")
    name = try reader.string("CURSOR_DELETE name")
  }
}
